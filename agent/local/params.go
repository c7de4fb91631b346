package local

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"tether/agent/localapi"
)

// params are the parameters of a request's URL. A parameter that is read is known. A
// handler calls unknown when it has read all, so that none is ignored, as unknown fields
// of bodies are not.
type params struct {
	values url.Values
	known  map[string]bool
}

func paramsOf(r *http.Request) params { return params{r.URL.Query(), map[string]bool{}} }

// Get returns the value of a parameter, "" if it is not there.
func (q params) Get(name string) string {
	q.known[name] = true
	return q.values.Get(name)
}

// Has reports whether a parameter is there.
func (q params) Has(name string) bool {
	q.known[name] = true
	return q.values.Has(name)
}

// number reads a number from 0 to max; 0 if there is none.
func (q params) number(name string, max int64) (int64, error) {
	if !q.Has(name) {
		return 0, nil
	}
	n, err := strconv.ParseInt(q.Get(name), 10, 64)
	if err != nil || n < 0 || n > max {
		return 0, q.bad(name, fmt.Sprintf("a number from 0 to %d", max))
	}
	return n, nil
}

// bad refuses the value of a parameter.
func (q params) bad(name, want string) error {
	return localapi.BadRequest("%s %.40q must be %s", name, q.Get(name), want)
}

// unknown refuses parameters that were not read.
func (q params) unknown() error {
	for _, name := range slices.Sorted(maps.Keys(q.values)) {
		if !q.known[name] {
			return localapi.BadRequest("this daemon does not know the parameter %.40q of this request", name)
		}
	}
	return nil
}
