//go:build linux

package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/agent/config"
	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/agent/policy"
	"tether/agent/redact"
	"tether/agent/term"
	"tether/agenttools"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// openMasking is openReal with tokens masked for agents.
func openMasking(t *testing.T) *real {
	t.Helper()
	return openReal(t, local.Options{}, term.Options{Outward: must.Get(redact.Compile(redact.Options{Tokens: true}))(t)})
}

// A page comes from the terminal's own programs, with what they printed meanwhile, to
// agents masked.
func TestFetch(t *testing.T) {
	d := openMasking(t)
	elsewhere, outside, visits := elsewhere(t)
	id, _, _ := d.served(t, term.User, elsewhere)
	herID, _, hers := d.served(t, term.Agent("eve"), elsewhere)
	person := localclient.New(d.socket)
	defer person.Close()
	bob := person.As("bob")

	page := must.Get(person.Fetch(t.Context(), id, localapi.FetchRequest{Path: "/broken"}))(t)
	if page.Status != 500 || !strings.Contains(string(page.Body), hushedToken) || !strings.Contains(page.Printed, "main.c:3:5: error: no ") || strings.Contains(page.Printed, hushedToken) ||
		len(page.Problems) != 1 || page.Problems[0].Line != 3 {
		t.Errorf("the person gets %+v", page)
	}
	page = must.Get(bob.Fetch(t.Context(), id, localapi.FetchRequest{Path: "/broken"}))(t)
	tellsNone(t, "an agent", fmt.Sprint(page, string(page.Body)))
	if page.Status != 500 || !strings.Contains(string(page.Body), "<h1>broken</h1>") || len(page.Problems) != 1 {
		t.Errorf("an agent gets %+v", page)
	}
	page = must.Get(bob.Fetch(t.Context(), id, localapi.FetchRequest{Path: "/cookie"}))(t)
	tellsNone(t, "an agent", fmt.Sprint(page))
	if text := fmt.Sprint(page.Headers); strings.Contains(text, "Set-Cookie") || !strings.Contains(text, "X-Token") {
		t.Errorf("an agent gets the headers %v", page.Headers)
	}
	if page = must.Get(bob.Fetch(t.Context(), id, localapi.FetchRequest{Path: "/away"}))(t); page.RedirectsTo != elsewhere {
		t.Errorf("a redirect: %+v", page)
	}
	for name, r := range map[string]localapi.FetchRequest{
		"a port of no terminal":    {Port: outside},
		"another terminal's port":  {Port: hers},
		"a port where nothing is":  {Port: 1025},
		"a port of the system":     {Port: 22},
		"what opens an editor":     {Path: "/__open-in-editor?file=x"},
		"a file outside":           {Path: "/@fs/etc/passwd"},
		"another method":           {Method: "POST"},
		"a header that is private": {Headers: map[string]string{"Cookie": "a=b"}},
	} {
		for who, c := range map[string]*localclient.Client{"the person": person, "an agent": bob} {
			if page, err := c.Fetch(t.Context(), id, r); err == nil || strings.Contains(err.Error(), "internal") {
				t.Errorf("%s, %s: %+v, %v", who, name, page, err)
			}
		}
	}
	if n := visits.Load(); n != 0 {
		t.Errorf("the daemon connected %d times to what no terminal has", n)
	}
	if _, err := bob.Fetch(t.Context(), herID, localapi.FetchRequest{}); err == nil {
		t.Error("an agent fetches from another agent's terminal")
	}
}

// The tool tells a model all of it in one answer, and bytes that are no text beside it.
func TestFetchTool(t *testing.T) {
	d := openMasking(t)
	id, _, port := d.served(t, term.User, "http://other.example/")
	client := localclient.New(d.socket)
	defer client.Close()
	bob := session(t, must.Get(client.As("bob").MCP(t.Context()))(t))
	ask := func(in args) (text string, rest []sdk.Content, failed bool) {
		t.Helper()
		r := must.Get(bob.session.CallTool(t.Context(), &sdk.CallToolParams{Name: "fetch_page", Arguments: in}))(t)
		return r.Content[0].(*sdk.TextContent).Text, r.Content[1:], r.IsError
	}
	text, _, _ := ask(args{"terminalId": id, "path": "/broken", "port": port})
	var a agenttools.FetchAnswer
	must.Do(t, json.Unmarshal([]byte(text), &a))
	tellsNone(t, "an agent", text)
	if a.Status != 500 || a.Printed == nil || len(a.Printed.Problems) != 1 || !strings.Contains(a.Body, "<h1>broken</h1>") || a.URL != fmt.Sprintf("http://localhost:%d/broken", port) {
		t.Errorf("%+v", a)
	}
	text, rest, _ := ask(args{"terminalId": id, "path": "/image"})
	if image, ok := rest[0].(*sdk.ImageContent); !ok || image.MIMEType != "image/png" || string(image.Data) != "\x89PNG" || !strings.Contains(text, `"sha256"`) {
		t.Errorf("%s %+v", text, rest)
	}
	text, rest, _ = ask(args{"terminalId": id, "path": "/liar"})
	tellsNone(t, "an agent", text)
	if len(rest) > 0 {
		t.Errorf("text that is called an image is one: %+v", rest)
	}
	for _, in := range []args{{}, {"terminalId": "nope"}, {"terminalId": id, "port": 22}, {"terminalId": id, "format": "pdf"}, {"terminalId": id, "url": "http://a"}} {
		if text, _, failed := ask(in); !failed {
			t.Errorf("%v: %s", in, text)
		}
	}
}

// One principal's fetches from a server that hangs keep no other from fetching.
func TestFetchesAreBounded(t *testing.T) {
	d := openMasking(t)
	id, _, _ := d.served(t, term.User, "http://other.example/")
	person := localclient.New(d.socket)
	defer person.Close()
	bob := person.As("bob")
	ctx, cancel := context.WithCancel(t.Context())
	var hanging sync.WaitGroup
	defer hanging.Wait()
	defer cancel()
	for range 8 {
		hanging.Go(func() {
			for ctx.Err() == nil { // the last slot may be taken for a moment
				_, _ = bob.Fetch(ctx, id, localapi.FetchRequest{Path: "/hang"})
			}
		})
	}
	testkit.Eventually(t, patience, "no more pages are fetched for an agent", func() bool {
		_, err := bob.Fetch(t.Context(), id, localapi.FetchRequest{Path: "/cookie"})
		e, is := errors.AsType[*localapi.Error](err)
		return is && e.Code == localapi.CodeLimit
	})
	must.Get(person.Fetch(t.Context(), id, localapi.FetchRequest{Path: "/cookie"}))(t)
}

func TestAgentsWithoutNetworkFetchNothing(t *testing.T) {
	c := config.Default().Policy
	c.Principals = []config.PolicyIdentity{{Name: "agent:bob", Sandbox: "auto", Roots: []string{testkit.Abs("/")}, Network: "none"}}
	d := openReal(t, local.Options{Policy: must.Get(policy.New(policy.Options{Config: c}))(t)})
	id, _, _ := d.served(t, term.Agent("bob"), "x")
	client := localclient.New(d.socket)
	defer client.Close()
	_, err := client.As("bob").Fetch(t.Context(), id, localapi.FetchRequest{})
	wantCode(t, "without a network", err, localapi.CodeDenied)
}
