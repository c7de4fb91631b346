package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"io"
	"os"
	"path"
	"strings"
	"time"
)

// archives makes a .tar.gz of each target, for Windows a .zip.
func (r *release) archives(context.Context) error {
	for _, t := range r.targets {
		files, err := r.files(t)
		if err != nil {
			return err
		}
		extension, write := ".tar.gz", writeTar
		if t.os == "windows" {
			extension, write = ".zip", writeZip
		}
		f, err := os.Create(r.path(t, extension))
		if err != nil {
			return err
		}
		err = write(f, strings.TrimSuffix(r.name(t, extension), extension), r.epoch, files)
		if err2 := f.Close(); err == nil {
			err = err2
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeTar writes files below one directory. Nothing in it depends on who makes it, or
// when: owner 0, one time.
func writeTar(to io.Writer, dir string, when time.Time, files []file) error {
	z := gzip.NewWriter(to)
	w := tar.NewWriter(z)
	for _, f := range files {
		data, err := os.ReadFile(f.from)
		if err != nil {
			return err
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: path.Join(dir, f.portable()), Size: int64(len(data)), Mode: int64(f.mode()), ModTime: when, Format: tar.FormatPAX}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return z.Close()
}

// writeZip is writeTar as a .zip.
func writeZip(to io.Writer, dir string, when time.Time, files []file) error {
	w := zip.NewWriter(to)
	for _, f := range files {
		data, err := os.ReadFile(f.from)
		if err != nil {
			return err
		}
		h := &zip.FileHeader{Name: path.Join(dir, f.portable()), Method: zip.Deflate, Modified: when.UTC()}
		h.SetMode(f.mode())
		part, err := w.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := part.Write(data); err != nil {
			return err
		}
	}
	return w.Close()
}
