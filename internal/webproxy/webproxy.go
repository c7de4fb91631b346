// Package webproxy finds the proxy that the environment names, as curl does: HTTPS_PROXY
// or HTTP_PROXY, otherwise ALL_PROXY, and NO_PROXY. net/http alone ignores ALL_PROXY.
//
//	transport.Proxy = webproxy.For
package webproxy

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"os"

	"golang.org/x/net/http/httpproxy"
)

// For is for [http.Transport.Proxy].
func For(r *http.Request) (*url.URL, error) { return Of(r.URL) }

// Of returns the proxy for a URL, whose scheme may be http, https, ws or wss. It is nil
// if there is none, as for addresses of this machine. It reads the environment at each
// call.
func Of(u *url.URL) (*url.URL, error) {
	web := *u
	switch u.Scheme {
	case "ws":
		web.Scheme = "http"
	case "wss":
		web.Scheme = "https"
	}
	c := httpproxy.FromEnvironment()
	all := cmp.Or(os.Getenv("ALL_PROXY"), os.Getenv("all_proxy"))
	c.HTTPProxy, c.HTTPSProxy = cmp.Or(c.HTTPProxy, all), cmp.Or(c.HTTPSProxy, all)
	proxy, err := c.ProxyFunc()(&web)
	if err != nil {
		return nil, fmt.Errorf("HTTPS_PROXY, HTTP_PROXY or ALL_PROXY: %w", err)
	}
	if proxy == nil {
		return nil, nil
	}
	switch proxy.Scheme {
	case "http", "https", "socks5", "socks5h":
		return proxy, nil
	}
	return nil, fmt.Errorf("the proxy %s of the environment is none of http, https, socks5 and socks5h", proxy.Redacted())
}
