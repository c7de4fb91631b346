package main

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// proxies are addresses that may name their clients.
type proxies []netip.Prefix

// parseNetworks reads the addresses and networks that a flag was given.
func parseNetworks(flag string, all []string) (found []netip.Prefix, err error) {
	for _, text := range all {
		prefix, err := netip.ParsePrefix(text)
		if addr, wrong := netip.ParseAddr(text); wrong == nil {
			prefix, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err != nil {
			return nil, &usageError{fmt.Sprintf("%s %.80q is not an address", flag, text), "use for example 127.0.0.1 or 10.0.0.0/8"}
		}
		found = append(found, prefix.Masked())
	}
	return found, nil
}

func (p proxies) trusts(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	return slices.ContainsFunc(p, func(prefix netip.Prefix) bool { return prefix.Contains(addr) })
}

// handler gives h the address of the proxy's client in place of the proxy's. So wrong
// tokens are limited for each client, and the audit log has its address. Without proxies,
// what a request says about its address is ignored.
func (p proxies) handler(h http.Handler) http.Handler {
	if len(p) == 0 {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if peer, err := netip.ParseAddrPort(r.RemoteAddr); err == nil && p.trusts(peer.Addr()) {
			if client, ok := p.client(r.Header.Values("X-Forwarded-For")); ok {
				r.RemoteAddr = net.JoinHostPort(client.String(), "0")
			}
		}
		h.ServeHTTP(w, r)
	})
}

// client returns the last address in X-Forwarded-For that is not a proxy's: anybody may
// have written the addresses before it.
func (p proxies) client(values []string) (client netip.Addr, ok bool) {
	all := strings.Split(strings.Join(values, ","), ",")
	for _, text := range slices.Backward(all) {
		addr, err := netip.ParseAddr(strings.TrimSpace(text))
		if err != nil {
			return client, ok
		}
		client, ok = addr.Unmap(), true
		if !p.trusts(addr) {
			return client, ok
		}
	}
	return client, ok
}
