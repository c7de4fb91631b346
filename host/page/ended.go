package page

import (
	"net/http"
	"strings"

	"tether/host/admission"
	"tether/host/rights"
)

// Ended are things of one kind that administrators list and end, by token: programs ask,
// and no browser.
type Ended struct {
	Path string // at which GET lists them, and below which DELETE ends one
	// What and One name them, as in "shells" and "shell".
	What, One string
	List      func(p rights.Principal) any
	// End ends one and reports whether it is there. name is its path below Path.
	End func(p rights.Principal, r *http.Request, name string) bool
}

// administrator decides which administrator a request is from, by token.
func (pg *Page) administrator(r *http.Request) (rights.Principal, *admission.Refusal) {
	r.Header.Del("Cookie") // a browser's cookie is an observer's in any case
	p, why := pg.checks.Admit(r)
	switch {
	case why == nil && admission.FromOtherPage(r):
		why = admission.ErrForeignSite
	case why == nil && !p.May(rights.Shells):
		why = &admission.Refusal{Status: http.StatusForbidden, Text: "this needs an administrator's token"}
	}
	return p, why
}

// forAdministrators is the door with a list.
func (pg *Page) forAdministrators(e Ended) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p, why := pg.administrator(r)
		if why != nil {
			pg.checks.Refuse(w, r, why)
			return
		}
		name, below := strings.CutPrefix(r.URL.Path, e.Path+"/")
		switch {
		case !below && r.Method == http.MethodGet:
			w.Header().Set("Cache-Control", "no-store")
			admission.AnswerJSON(w, map[string]any{e.What: e.List(p)})
		case below && r.Method == http.MethodDelete && e.End(p, r, name):
			w.WriteHeader(http.StatusNoContent)
		case below && r.Method == http.MethodDelete:
			http.Error(w, "no such "+e.One, http.StatusNotFound)
		default:
			http.Error(w, "GET "+e.Path+" lists "+e.What+", DELETE of a path below it ends a "+e.One, http.StatusMethodNotAllowed)
		}
	}
}
