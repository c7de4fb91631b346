package mcp

import (
	"context"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/agenttools"
	"tether/screen"
)

// scheme is the first part of a terminal's URI: terminal:///pty-abc123.
const scheme = "terminal:///"

// addResources makes each terminal a resource. Terminals come and go, so the list is made
// at each resources/list.
func (s *Server) addResources() {
	s.server.AddResourceTemplate(&sdk.ResourceTemplate{
		URITemplate: scheme + "{id}", Name: "terminal", Title: "Terminal", MIMEType: "text/plain",
		Description: "The newest 64 KB of what a terminal has printed, as text. Subscribe to hear of new output and of the exit.",
	}, s.readResource)
	s.server.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			if method == "resources/list" {
				return s.listResources(), nil
			}
			return next(ctx, method, req)
		}
	})
}

func (s *Server) listResources() *sdk.ListResourcesResult {
	out := &sdk.ListResourcesResult{Resources: []*sdk.Resource{}}
	out.CacheScope = "private"
	for _, i := range s.tools.Terminals().List() {
		state := "running"
		if i.Exit != nil {
			state = "exited"
		}
		title := i.Title
		if i.Machine != "" { // terminals of several machines may have the same title; the name begins with the machine
			title = i.Name
			if i.Title != "" && !strings.HasSuffix(i.Name, "/"+i.Title) {
				title += ": " + i.Title
			}
		}
		out.Resources = append(out.Resources, &sdk.Resource{
			URI: scheme + i.ID, Name: i.ID, Title: screen.Clean(title), MIMEType: "text/plain",
			Description: "terminal of the " + string(i.Owner) + ", " + state + ", in " + screen.Clean(i.Cwd),
		})
	}
	return out
}

// readResource handles resources/read: it returns the same as read_terminal without
// options.
func (s *Server) readResource(ctx context.Context, req *sdk.ReadResourceRequest) (answer *sdk.ReadResourceResult, err error) {
	defer s.tools.Survive("resources/read", func() { answer, err = nil, agenttools.ErrBug })
	id, ok := strings.CutPrefix(req.Params.URI, scheme)
	if !ok {
		return nil, sdk.ResourceNotFoundError(req.Params.URI)
	}
	t, err := s.tools.Terminals().Open(id)
	if err != nil {
		return nil, sdk.ResourceNotFoundError(req.Params.URI)
	}
	r, err := agenttools.ReadNewest(ctx, t)
	if err != nil {
		return nil, err
	}
	contents := &sdk.ResourceContents{URI: req.Params.URI, MIMEType: "text/plain", Text: r.History, Meta: sdk.Meta{
		metaUntrusted: true, "tether/cursor": r.Cursor, "tether/truncated": r.Truncated, "tether/exited": r.Exited,
	}}
	if r.Masked > 0 {
		contents.Meta["tether/masked"] = r.Masked
	}
	if r.ExitFields != nil {
		contents.Meta["tether/exitCode"] = r.ExitCode
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{contents}}, nil
}
