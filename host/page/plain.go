package page

import (
	"html/template"
	"net/http"
	"strings"
	"sync"
	"time"

	"tether/host/rights"
	"tether/screen"
)

// plainPage lists terminals without scripts: for a browser that runs none, or at a host
// that was built without Node.
var plainPage = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("plain").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta http-equiv="refresh" content="5">
<title>tether-host</title><link rel="stylesheet" href="/assets/plain.css"></head><body>
<header><h1>tether<span>host</span></h1><form method="post" action="/logout"><button>Log out</button></form></header>
{{define "row"}}<li><a href="/terminals/{{.ID}}.txt">{{.Name}}</a> <span class="state {{.State}}">{{or .Awaits .State}}{{with .ExitCode}} {{.}}{{end}}</span>
<small>{{with .Label}}{{.}} · {{end}}{{with .URL}}{{.}} · {{end}}held by {{.Claim}}{{if ne .Title .Name}} · {{.Title}}{{end}}{{with .Running}} · runs <code>{{.}}</code>{{end}}{{with .Cwd}} · {{.}}{{end}}{{with .Kept}} · {{.}}{{end}}</small></li>
{{end}}{{range .}}<section><h2>{{.Machine}}</h2><ul>{{range .Live}}{{template "row" .}}{{end}}</ul>
{{with .Exited}}<h3>exited</h3><ul>{{range .}}{{template "row" .}}{{end}}</ul>{{end}}</section>
{{else}}<p>No terminals are shared now. On a machine, <code>tether pair</code> and <code>tether run</code> change that.</p>{{end}}
</body></html>
`))
})

// plainGroup has the terminals of a machine on the plain page.
type plainGroup struct {
	Machine      string
	Live, Exited []Row
}

func (pg *Page) plain(w http.ResponseWriter, p rights.Principal) {
	var groups []plainGroup
	for _, r := range pg.opts.Terminals.Rows(p) {
		for _, s := range []*string{&r.Name, &r.Title, &r.Running, &r.Cwd, &r.Machine, &r.Claim} {
			*s = screen.Clean(*s)
		}
		if n := len(groups); n == 0 || groups[n-1].Machine != r.Machine {
			groups = append(groups, plainGroup{Machine: r.Machine})
		}
		g := &groups[len(groups)-1]
		if r.State == "exited" {
			g.Exited = append(g.Exited, r)
			continue
		}
		if r.State == "away" {
			r.State = "offline"
		}
		r.Awaits = strings.ReplaceAll(r.Awaits, "_", " ")
		g.Live = append(g.Live, r)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = plainPage().Execute(w, groups) // fails only with the connection
}

// Kept returns, for a parked terminal, since when its machine is away and until when the
// host keeps it, in words; "" for others. It is for the plain page.
func (r Row) Kept() string {
	if r.Until == 0 {
		return ""
	}
	at := func(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04 UTC") }
	text := "away since " + at(r.Away) + ", kept until " + at(r.Until)
	if r.Dropped != "" {
		text += "; its text is gone: " + r.Dropped
	}
	return text
}
