package localclient

import (
	"context"
	"net/http"

	"tether/agent/localapi"
)

// Panes lists the panes of other programs that run now.
func (c *Client) Panes(ctx context.Context) (localapi.PaneList, error) {
	return ask[localapi.PaneList](ctx, c, http.MethodGet, "/v1/panes", nil)
}

// Adopt makes a pane a terminal, which is lent to nobody.
func (c *Client) Adopt(ctx context.Context, r localapi.AdoptRequest) (localapi.Terminal, error) {
	return ask[localapi.Terminal](ctx, c, http.MethodPost, "/v1/adopt", r)
}

// Unadopt ends an adoption and returns the terminal with its exit. The pane runs on.
func (c *Client) Unadopt(ctx context.Context, ref string) (localapi.Terminal, error) {
	return ask[localapi.Terminal](ctx, c, http.MethodPost, terminalPath(ref, "/unadopt"), struct{}{})
}
