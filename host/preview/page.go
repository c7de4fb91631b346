package preview

import (
	"crypto/rand"
	"errors"
	"html/template"
	"net/http"
	"strings"
	"sync"
	"unicode"

	"tether/ahp"
)

// problemPage says what is the matter. Unless that lasts, it looks again and again, and
// loads the preview when it is back.
var problemPage = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("problem").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>tether: preview</title>{{if not .Lasts}}<noscript><meta http-equiv="refresh" content="3"></noscript>{{end}}
<style nonce="{{.Nonce}}">:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:34em;margin:15vh auto;padding:0 1em}small{opacity:.7}</style></head>
<body><h1>tether</h1><p id="problem" role="status">{{.Text}}</p>{{if not .Lasts}}<p><small>This page loads the preview when it is back.</small></p>
<script nonce="{{.Nonce}}">setInterval(() => document.hidden || fetch(location.href, {method: "HEAD", cache: "no-store", redirect: "manual"})
  .then(a => a.headers.has("{{.Header}}") || location.replace(location.href), () => {}), 2000);</script>{{end}}
</body></html>
`))
})

// maxSentence bounds what a machine says about a problem, in bytes.
const maxSentence = 500

// sentence returns a text of a machine's as one line.
func sentence(text string) string {
	text = strings.ToValidUTF8(text[:min(len(text), maxSentence)], "")
	return strings.Join(strings.FieldsFunc(text, func(c rune) bool { return unicode.IsSpace(c) || !unicode.IsPrint(c) }), " ")
}

// answer tells the visitor about a problem: with a page where one is shown.
func (p *Previews) answer(w http.ResponseWriter, r *http.Request, err error) {
	problem, ok := errors.AsType[*Problem](err)
	if !ok {
		problem = errNoAnswer
	}
	nonce := rand.Text()
	h := w.Header()
	clear(h)
	h.Set(ahp.PortsError, problem.Text)
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'nonce-"+nonce+"'; script-src 'nonce-"+nonce+"'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	if !problem.Lasts && problem.Status >= http.StatusInternalServerError {
		h.Set("Retry-After", "2")
	}
	if r.Header.Get("Sec-Fetch-Dest") != "document" || r.Method == http.MethodHead {
		h.Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(problem.Status)
		if r.Method != http.MethodHead {
			_, _ = w.Write([]byte(problem.Text + "\n")) // fails only with the connection
		}
		return
	}
	w.WriteHeader(problem.Status)
	_ = problemPage().Execute(w, struct {
		Nonce, Text, Header string
		Lasts               bool
	}{nonce, problem.Text, ahp.PortsError, problem.Lasts}) // fails only with the connection
}
