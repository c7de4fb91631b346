package oidc

import (
	"html/template"
	"net/http"
	"sync"
)

// pages are the pages for a login of the command line. The host serves their style sheet.
var pages = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Parse(`
{{define "top"}}<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>tether-host: log in</title><link rel="stylesheet" href="/assets/plain.css">{{end}}
{{define "body"}}</head><body class="login"><main><h1>tether<span>host</span></h1>{{end}}
{{define "end"}}</main></body></html>{{end}}
{{define "code"}}{{template "top"}}{{template "body"}}
<form method="get" action="/login/oidc/cli"><label for="code">The code that <code>tether login</code> shows</label>
<input id="code" name="code" required autofocus autocomplete="off" spellcheck="false"><button>Go on</button></form>{{template "end"}}{{end}}
{{define "confirm"}}{{template "top"}}{{template "body"}}
<p>Let the command line {{if .Code}}that shows <strong>{{.Code}}</strong> (it asked from {{.From}}){{else}}on this computer{{end}} act as <strong>{{.Person}}</strong>?</p>
<p>Allow it only if you have run <code>tether login</code> just now{{if .Code}} and see the same code there{{end}}. It can then see what is shared with you, and pair machines as yours.</p>
<form method="post" action="/login/oidc/cli/allow"><input type="hidden" name="id" value="{{.ID}}"><button autofocus>Allow</button></form>{{template "end"}}{{end}}
{{define "back"}}{{template "top"}}<meta http-equiv="refresh" content="0;url=http://127.0.0.1:{{.Port}}/?code={{.Code}}&amp;state={{.State}}">{{template "body"}}
<p><a href="http://127.0.0.1:{{.Port}}/?code={{.Code}}&amp;state={{.State}}">Continue</a></p>{{template "end"}}{{end}}
{{define "done"}}{{template "top"}}{{template "body"}}<p>The command line is logged in as <strong>{{.}}</strong>. You can close this page.</p>{{template "end"}}{{end}}
`))
})

// show writes one of the pages.
func show(w http.ResponseWriter, name string, data any) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = pages().ExecuteTemplate(w, name, data) // fails only with the connection
}
