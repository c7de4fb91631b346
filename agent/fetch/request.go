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
	Method  string            // GET, HEAD or OPTIONS, with Write also one of the others
	Headers map[string]string // only those that say which form of the page is wanted
	Most    int               // bytes of the body that are returned; at least 1
	// Dirs are the directories whose files development servers may be asked for by their
	// absolute paths.
	Dirs []string
	// Write allows requests that change something: other methods, and what refused.txt
	// lists.
	Write bool
}

// Error is why a request is refused. Its text says what would be accepted.
type Error string

func (e Error) Error() string { return string(e) }

func refused(format string, args ...any) error { return Error(fmt.Sprintf(format, args...)) }

// The methods. Those of reading change nothing, as far as HTTP says.
var (
	reading = []string{http.MethodGet, http.MethodHead, http.MethodOptions}
	writing = []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
)

// Reads reports whether a method changes nothing, as far as HTTP says.
func Reads(method string) bool { return slices.Contains(reading, method) }

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
	if !Reads(r.Method) && !(r.Write && slices.Contains(writing, r.Method)) {
		return nil, refused("method %.20q: only %s, which change nothing", r.Method, strings.Join(reading, ", "))
	}
	if r.Most < 1 || r.Most > MaxBody {
		return nil, refused("%d bytes of a body: must be 1 to %d", r.Most, MaxBody)
	}
	if err := r.checkHeaders(); err != nil {
		return nil, err
	}
	if len(r.Path) > maxPath {
		return nil, refused("the path has %d bytes, at most %d are allowed", len(r.Path), maxPath)
	}
	u, err := CheckPath(cmp.Or(r.Path, "/"))
	if err != nil {
		return nil, err
	}
	u.Scheme, u.Host = "http", fmt.Sprintf("localhost:%d", r.Port)
	return u, r.visit(u)
}

// visit is MayVisit for this request.
func (r *Request) visit(u *url.URL) error {
	if r.Write {
		return nil
	}
	return MayVisit(u, r.Dirs)
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

// CheckPath reads a path with a query, or returns an Error. What names a host, in
// whatever form, is no path.
func CheckPath(path string) (*url.URL, error) {
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
	return u, nil
}
