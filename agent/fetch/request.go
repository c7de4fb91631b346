package fetch

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// LeastPort is the lowest port that can be asked: below are the system's services.
const LeastPort = 1024

// Bounds of a request.
const (
	maxPath        = 4 << 10 // bytes
	maxHeaders     = 16
	maxHeaderValue = 1 << 10 // bytes
	// MaxBody bounds Request.Most and Page.Body, in bytes.
	MaxBody = 1 << 20
)

// Request is what to ask a server for. The zero values of Method and Most are GET and
// MaxBody.
type Request struct {
	Port    int
	Path    string            // with the query; begins with a slash
	Method  string            // GET, HEAD or OPTIONS
	Headers map[string]string // only those that say which form of the page is wanted
	Most    int               // bytes of the body that are returned; at least 1
	// Dirs are the directories whose files development servers may be asked for by their
	// absolute paths.
	Dirs []string
}

// Error is why a request is refused. Its text says what would be accepted.
type Error string

func (e Error) Error() string { return string(e) }

func refused(format string, args ...any) error { return Error(fmt.Sprintf(format, args...)) }

// methods change nothing, as far as HTTP says.
var methods = []string{http.MethodGet, http.MethodHead, http.MethodOptions}

// allowed are the headers that cross. Others could carry a person's rights, lead a proxy
// elsewhere, or change how the connection is read.
var allowed = []string{"Accept", "Accept-Language", "Cache-Control", "If-Modified-Since", "If-None-Match", "Range", "X-Requested-With"}

// check completes r, and returns an Error if it asks for something that is not for
// whoever only looks.
func (r *Request) check() (*url.URL, error) {
	r.Method, r.Most = cmp.Or(r.Method, http.MethodGet), cmp.Or(r.Most, MaxBody)
	if r.Port < LeastPort || r.Port > 65535 {
		return nil, refused("port %d: a port must be %d to 65535", r.Port, LeastPort)
	}
	if !slices.Contains(methods, r.Method) {
		return nil, refused("method %.20q: only %s, which change nothing", r.Method, strings.Join(methods, ", "))
	}
	if r.Most < 1 || r.Most > MaxBody {
		return nil, refused("%d bytes of a body: must be 1 to %d", r.Most, MaxBody)
	}
	if err := r.checkHeaders(); err != nil {
		return nil, err
	}
	u, err := r.parse(r.Path)
	if err != nil {
		return nil, err
	}
	return u, r.mayVisit(u)
}

func (r *Request) checkHeaders() error {
	if len(r.Headers) > maxHeaders {
		return refused("%d headers: at most %d", len(r.Headers), maxHeaders)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		value := r.Headers[name]
		switch {
		case !slices.Contains(allowed, textproto.CanonicalMIMEHeaderKey(name)):
			return refused("header %.40q does not cross; allowed are %s", name, strings.Join(allowed, ", "))
		case len(value) > maxHeaderValue || strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f || c == utf8.RuneError }):
			return refused("the value of header %s must be at most %d bytes without control characters", name, maxHeaderValue)
		}
	}
	return nil
}

// parse reads a path with a query. What names a host, in whatever form, is no path.
func (r *Request) parse(path string) (*url.URL, error) {
	path = cmp.Or(path, "/")
	if len(path) > maxPath {
		return nil, refused("the path has %d bytes, at most %d are allowed", len(path), maxPath)
	}
	if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.HasPrefix(path, `/\`) {
		return nil, refused("path %.60q must begin with one slash; the server is chosen by terminal and port", path)
	}
	if strings.ContainsFunc(path, func(c rune) bool { return c <= ' ' || c == 0x7f || c == utf8.RuneError }) {
		return nil, refused("path %.60q contains blanks or control characters; write them as %%20 and so on", path)
	}
	u, err := url.ParseRequestURI(path)
	if err != nil {
		return nil, refused("path %.60q: %v", path, errors.Unwrap(err))
	}
	u.Scheme, u.Host = "http", fmt.Sprintf("localhost:%d", r.Port)
	return u, nil
}
