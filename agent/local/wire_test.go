package local

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tether/agent/localapi"
	"tether/agenttools"
	"tether/ahp"
	"tether/internal/testkit/must"
)

// spoken are the documents about terminals that this machine says or takes, by interface.
var spoken = []any{
	localapi.TerminalList{}, localapi.SpawnRequest{}, localapi.CommandList{}, localapi.Waited{}, localapi.ProblemList{}, localapi.Screen{}, localapi.Ports{},
	localapi.LendRequest{}, localapi.UnlendRequest{}, localapi.ShareRequest{}, localapi.NewShare{}, localapi.Shares{}, localapi.ApprovalList{},
	localapi.DeclareRequest{}, localapi.DeclaredList{}, localapi.Status{}, localapi.Digest{},
	agenttools.Metadata{}, agenttools.ReadAnswer{}, agenttools.WaitAnswer{}, agenttools.ProblemsAnswer{},
	ptySpawn{}, ptySpawned{},
	ahp.StateParams{}, ahp.AudienceParams{}, ahp.WatchersParams{}, ahp.ShareParams{}, ahp.UnshareParams{}, ahp.ShareResult{},
}

// The names and kinds on the wire are those of testdata/wire.txt, whatever the types in
// the code are called and made of.
func TestNamesOnTheWire(t *testing.T) {
	var lines []string
	for _, one := range spoken {
		v := reflect.New(reflect.TypeOf(one)).Elem()
		fill(v, 0)
		text, err := json.Marshal(v.Interface())
		if err != nil {
			t.Fatalf("%T: %v", one, err)
		}
		var decoded any
		must.Do(t, json.Unmarshal(text, &decoded))
		lines = append(lines, flat(fmt.Sprintf("%T", one), decoded)...)
	}
	want := must.Get(os.ReadFile("testdata/wire.txt"))(t)
	if diff := cmp.Diff(strings.Split(strings.TrimSpace(string(want)), "\n"), lines); diff != "" {
		t.Errorf("names on the wire have changed (+):\n%s", diff)
	}
}

// fill gives each exported field a value, so that none is left out of JSON.
func fill(v reflect.Value, depth int) {
	if depth > 10 {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64, reflect.Int32, reflect.Int16, reflect.Int8:
		v.SetInt(1)
	case reflect.Uint, reflect.Uint64, reflect.Uint32, reflect.Uint16, reflect.Uint8:
		v.SetUint(1)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte("1"))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth+1)
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, depth+1)
		fill(value, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1, 0).UTC()))
			return
		}
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() || f.Anonymous {
				fill(v.Field(i), depth+1)
			}
		}
	}
}

// flat lists the places of a document with their kinds.
func flat(at string, v any) (lines []string) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			lines = append(lines, flat(at+"."+name, v[name])...)
		}
		return lines
	case []any:
		return flat(at+"[]", v[0])
	}
	return []string{fmt.Sprintf("%s %T", at, v)}
}
