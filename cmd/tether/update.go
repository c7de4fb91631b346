package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tether/installer"
	"tether/internal/version"
	"tether/internal/webproxy"
)

const (
	updateWithin = 20 * time.Second // for the answer of the server with the releases
	maxSums      = 1 << 20          // bytes of a list of checksums
)

func updateCommand(a *app) *cobra.Command {
	var from string
	c := &cobra.Command{
		Use: "update", Short: "show whether there is a newer version, and how to get it", Args: noArgs,
		Long: `show whether there is a newer version, how this program was installed, and the command
that updates it. It changes nothing.

Only this command asks for a newer version, and only when you run it: it downloads the
list of checksums of the newest release from the address that was built in, or from
--from. Nothing about you is sent.`,
		RunE: func(c *cobra.Command, _ []string) error { return a.update(c.Context(), from) },
	}
	c.Flags().StringVar(&from, "from", version.Base(), "the address of the directory with the releases")
	return c
}

func (a *app) update(ctx context.Context, from string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(self); err == nil {
		self = real
	}
	home, _ := os.UserHomeDir() // "" is no home
	base := strings.TrimSuffix(from, "/")
	how, command := installer.Origin(self, home, base)
	fmt.Fprintf(a.stdout, "tether %s, installed %s: %s\n", version.Text(), how, self)
	if base == "" {
		a.notice("this build knows no address of releases; name one with --from")
		return nil
	}
	newest, err := newestRelease(ctx, base)
	if err != nil {
		return fmt.Errorf("ask %s for the newest version: %w", base, err)
	}
	newer, known := version.Newer(newest, version.Text())
	switch {
	case !known:
		fmt.Fprintf(a.stdout, "the newest release is %s; this program is none\n", newest)
	case !newer:
		fmt.Fprintf(a.stdout, "there is no newer version: %s has %s\n", base, newest)
		return nil
	default:
		fmt.Fprintf(a.stdout, "there is a newer version: %s\n", newest)
	}
	if command != "" {
		fmt.Fprintf(a.stdout, "to update: %s\n", command)
	}
	return nil
}

// newestRelease returns the version of the release whose list of checksums is at the
// address.
func newestRelease(ctx context.Context, base string) (string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", err
	}
	if u.Host == "" || u.Scheme != "https" && u.Hostname() != "127.0.0.1" && u.Hostname() != "localhost" {
		return "", errors.New("want an address with https")
	}
	ctx, cancel := context.WithTimeout(ctx, updateWithin)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.JoinPath("SHA256SUMS").String(), nil)
	if err != nil {
		return "", err
	}
	transport := &http.Transport{Proxy: webproxy.For, DisableKeepAlives: true}
	answer, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("SHA256SUMS: status %d", answer.StatusCode)
	}
	sums, err := io.ReadAll(io.LimitReader(answer.Body, maxSums))
	if err != nil {
		return "", err
	}
	return version.Listed(string(sums))
}
