package localapi_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tether/agent/localapi"
	"tether/internal/testkit/must"
)

// A request keeps bytes that JSON cannot carry, and the first of them is named.
func TestPack(t *testing.T) {
	asked := localapi.SpawnRequest{Command: []string{"rm", "--", "a\xe9"}, Env: []string{"A=1", "B=\xff"}, SetEnv: []string{"C=\xed\xa0\x80"}, Cwd: "/d\xe9"}
	r := asked
	if got, want := r.Pack(), `the directory "/d\xe9"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if asked.Command[2] != "a\xe9" {
		t.Error("the caller's arguments have changed")
	}
	data := must.Get(json.Marshal(r))(t)
	var got localapi.SpawnRequest
	must.Do(t, json.Unmarshal(data, &got))
	must.Do(t, got.Unpack())
	got.CommandBytes, got.EnvBytes, got.SetEnvBytes, got.CwdBytes = nil, nil, nil, nil
	if diff := cmp.Diff(asked, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	plain := localapi.SpawnRequest{Command: []string{"größe"}}
	if what := plain.Pack(); what != "" || plain.CommandBytes != nil {
		t.Errorf("%q of a request that is UTF-8", what)
	}
	for _, i := range []int{-1, 1} {
		r := localapi.SpawnRequest{Command: []string{"x"}, CommandBytes: map[int][]byte{i: []byte("y")}}
		if r.Unpack() == nil {
			t.Errorf("index %d of one argument was accepted", i)
		}
	}
}

// Text of any request that package json would replace is found.
func TestNotText(t *testing.T) {
	for want, request := range map[string]any{
		"":               localapi.SpawnRequest{Command: []string{"x"}, CommandBytes: map[int][]byte{0: {0xe9}}, CwdBytes: []byte{0xff}},
		`name "n\xe9"`:   localapi.SpawnRequest{Name: "n\xe9"},
		`command "\xe9"`: &localapi.SandboxRequest{Command: []string{"x", "\xe9"}},
		`to "\xff"`:      localapi.LendRequest{To: []string{"\xff"}},
	} {
		if got := localapi.NotText(request); got != want {
			t.Errorf("%+v: %q, want %q", request, got, want)
		}
	}
}

// Every request and answer with commands or directories carries their bytes.
func TestPackOthers(t *testing.T) {
	for _, r := range []interface {
		Pack() string
		Unpack() error
	}{&localapi.SandboxRequest{Command: []string{"a\xe9", "b"}, Cwd: "/d\xff"}, &localapi.MayRunRequest{Command: []string{"a\xe9", "b"}, Cwd: "/d\xff"}} {
		want := fmt.Sprintf("%#v", r)
		if what := r.Pack(); what == "" || localapi.NotText(r) != "" {
			t.Errorf("%T: %q, %q is left", r, what, localapi.NotText(r))
		}
		data, err := json.Marshal(r)
		if err == nil {
			err = json.Unmarshal(data, r)
		}
		if err == nil {
			err = r.Unpack()
		}
		var got localapi.SandboxRequest
		switch r := r.(type) {
		case *localapi.SandboxRequest:
			got = *r
		case *localapi.MayRunRequest:
			got = localapi.SandboxRequest(*r)
		}
		if err != nil || !slices.Equal(got.Command, []string{"a\xe9", "b"}) || got.Cwd != "/d\xff" {
			t.Errorf("%s became %#v, %v", want, got, err)
		}
	}
}
