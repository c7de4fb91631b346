// Package web has the files of the page that a host shows to people. It decides nothing
// about access.
//
// The page is a client of the host like any other: it speaks AHP over a WebSocket. It
// draws with xterm.js, which "make web" takes from npm and puts next to the page's own
// files. If "make web" has not run, for example on a machine without Node, Complete
// returns false and the host shows its plain page instead.
package web

import (
	"embed"
	"io/fs"
)

// files are the page's own files and those that make web has added.
//
//go:embed all:static
var files embed.FS

// needed are the files that make web adds.
var needed = []string{"vendor/xterm.mjs", "vendor/xterm.css", "vendor/addon-search.mjs"}

// Files are the files of the page, index.html at the top.
func Files() fs.FS {
	sub, err := fs.Sub(files, "static")
	if err != nil {
		panic("web: " + err.Error()) // cannot happen: the name is valid
	}
	return sub
}

// Complete reports whether the page can be shown.
func Complete() bool {
	for _, name := range needed {
		if _, err := fs.Stat(Files(), name); err != nil {
			return false
		}
	}
	return true
}
