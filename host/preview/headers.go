package preview

import (
	"net/http"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"
	"sync"

	"tether/ahp"
)

// rewrite makes the request one to the dev server: as a browser on its own machine would
// send it, without what is between the browser and us.
func (p *Previews) rewrite(out *httputil.ProxyRequest, port *Port, own string) {
	at := "localhost:" + strconv.Itoa(port.Number)
	r := out.Out
	r.URL.Scheme, r.URL.Host, r.Host = "http", at, at
	h := r.Header
	dropOurs(h)
	if h.Get("Origin") != "" {
		h.Set("Origin", "http://"+at)
	}
	if from, ok := strings.CutPrefix(h.Get("Referer"), own); ok && strings.HasPrefix(from, "/") {
		h.Set("Referer", "http://"+at+from)
	} else {
		h.Del("Referer")
	}
	if site := h.Get("Sec-Fetch-Site"); site != "same-origin" && h.Get("Origin") == "" {
		h.Del("Authorization") // a page of the preview's own has not set it
	}
	if h.Get("Accept-Encoding") == "" {
		h.Set("Accept-Encoding", "identity") // else the way there would ask for gzip and unpack it
	}
	if !isUpgrade(r) {
		h.Del("Upgrade")
		if h.Get("Connection") != "" {
			h.Del("Connection")
		}
	}
	cookies := h["Cookie"]
	h.Del("Cookie")
	for _, line := range cookies {
		if line = withoutOurs(line); line != "" {
			h.Add("Cookie", line)
		}
	}
}

// dropOurs removes the headers that are between hosts and machines.
func dropOurs(h http.Header) {
	for name := range h {
		if strings.HasPrefix(http.CanonicalHeaderKey(name), ahp.PortsPrefix) {
			delete(h, name)
		}
	}
}

// withoutOurs removes our cookies from a Cookie header, and leaves the others as they
// are.
func withoutOurs(line string) string {
	all := strings.Split(line, ";")
	all = slices.DeleteFunc(all, func(one string) bool {
		name, _, _ := strings.Cut(one, "=")
		return isOurs(strings.TrimSpace(name))
	})
	return strings.TrimSpace(strings.Join(all, ";"))
}

// refusedHeaders of dev servers would reach beyond the preview: to neighbours, to other
// ports, or to a later page.
var refusedHeaders = []string{"Strict-Transport-Security", "Alt-Svc", "Clear-Site-Data", "Public-Key-Pins", "Set-Cookie2"}

// clean makes an answer one for the browser, or returns why it has to be ours.
func (p *Previews) clean(a *http.Response, port *Port) error {
	h := a.Header
	if why := h.Get(ahp.PortsError); why != "" {
		return &Problem{Status: max(a.StatusCode, http.StatusBadRequest), Text: sentence(why), Lasts: a.StatusCode < http.StatusInternalServerError}
	}
	size := 0
	for name, values := range h {
		for _, v := range values {
			size += len(name) + len(v) + len(": \r\n")
		}
	}
	if size > maxAnswerHeader {
		return errBigHeader
	}
	dropOurs(h)
	for _, name := range refusedHeaders {
		if h.Get(name) != "" {
			p.once(name, port, "a dev server's header is dropped: it would reach beyond the preview")
			h.Del(name)
		}
	}
	if all := h["Set-Cookie"]; len(all) > 0 {
		left := slices.DeleteFunc(all, func(one string) bool { return p.refuseCookie(one, port) })
		if h["Set-Cookie"] = left; len(left) == 0 {
			delete(h, "Set-Cookie")
		}
	}
	if a.StatusCode != http.StatusSwitchingProtocols {
		h.Add("Cache-Control", "private") // what the cookie protects may be in no shared cache
	}
	return nil
}

// refuseCookie reports whether a dev server may not set a cookie: neighbours would get
// it, or it has a name of ours. One without a name could be read as any.
func (p *Previews) refuseCookie(line string, port *Port) bool {
	pair, attributes, _ := strings.Cut(line, ";")
	name, _, named := strings.Cut(pair, "=")
	name = strings.TrimSpace(name)
	if !named || name == "" || isOurs(name) {
		p.once("cookie", port, "a dev server's cookie without a name, or with one of the host's, is dropped")
		return true
	}
	for one := range strings.SplitSeq(attributes, ";") {
		if key, _, _ := strings.Cut(one, "="); strings.EqualFold(strings.TrimSpace(key), "Domain") {
			p.once("Domain", port, "a dev server's cookie with the attribute Domain is dropped: other previews would get it")
			return true
		}
	}
	return false
}

// maxSaid bounds what is remembered as said.
const maxSaid = 256

// said remembers what was noted.
type said struct {
	mu  sync.Mutex
	all map[string]bool
}

// once notes something about a port's dev server, the first time.
func (p *Previews) once(what string, port *Port, text string) {
	p.said.mu.Lock()
	key := what + " " + port.Name + " " + strconv.Itoa(port.Number)
	first := !p.said.all[key] && len(p.said.all) < maxSaid
	if first {
		if p.said.all == nil {
			p.said.all = map[string]bool{}
		}
		p.said.all[key] = true
	}
	p.said.mu.Unlock()
	if first {
		p.opts.Note(port.Name, port.Number, what, text)
	}
}
