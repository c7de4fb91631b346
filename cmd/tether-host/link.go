package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"tether/internal/jsonspan"
)

func linkCommand(stdin io.Reader, stdout io.Writer) *cobra.Command {
	var u hostURL
	c := &cobra.Command{
		Use: "link", Short: "print a one-time link to a host's page in a browser",
		Long: `Prints a link to the page of a running host. The link logs one browser in with the rights of the token, when
somebody presses the button there. It works once and expires after ten minutes. The token must have the role observer or admin.`,
		Args: exactly(0, "no argument"),
		RunE: func(c *cobra.Command, _ []string) error {
			link, err := askLink(c.Context(), &u, stdin)
			if err == nil {
				fmt.Fprintln(stdout, link)
			}
			return err
		},
	}
	u.flags(c)
	return c
}

// askLink asks the host for a link.
func askLink(ctx context.Context, u *hostURL, stdin io.Reader) (string, error) {
	const most = 4 << 10
	target, status, body, err := u.ask(ctx, http.MethodPost, "launch", "observer", most, stdin)
	if err != nil {
		return "", err
	}
	var got struct{ Path string }
	if status != http.StatusOK || jsonspan.Unmarshal(body, &got) != nil || !strings.HasPrefix(got.Path, "/") || printable(got.Path) != got.Path {
		return "", answered(status, body)
	}
	return strings.TrimSuffix(target, "/launch") + got.Path, nil
}

// answered returns the error for an unexpected answer.
func answered(status int, body []byte) error {
	return fmt.Errorf("the host answered with status %d: %s", status, bytes.TrimSpace(body[:min(len(body), 200)]))
}

// ask requests a path of the host and returns the URL and the answer, of which it reads a
// bounded part. role is a role that suffices, for the error without a token.
func (u *hostURL) ask(ctx context.Context, method, path, role string, most int64, stdin io.Reader) (target string, status int, body []byte, err error) {
	token, err := u.token(stdin)
	if err != nil {
		return "", 0, nil, err
	}
	target, err = u.at(path, true, token != "")
	if err != nil {
		return "", 0, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, target, nil)
	if err != nil {
		return "", 0, nil, err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(r)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // without the URL
		}
		return "", 0, nil, fmt.Errorf("ask the host: %w", err)
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(io.LimitReader(answer.Body, most))
	if err != nil {
		return "", 0, nil, fmt.Errorf("ask the host: %w", err)
	}
	if answer.StatusCode == http.StatusUnauthorized && token == "" {
		return "", 0, nil, fmt.Errorf("the host requires a token: give one with --token-file FILE (tether-host token create NAME --role %s creates one)", role)
	}
	return target, answer.StatusCode, body, nil
}

// list requests a path of the host that only administrators may read, and decodes the
// answer.
func (u *hostURL) list(ctx context.Context, path string, stdin io.Reader, v any) error {
	_, status, body, err := u.ask(ctx, http.MethodGet, path, "admin", maxReply, stdin)
	if err == nil && (status != http.StatusOK || jsonspan.Unmarshal(body, v) != nil) {
		err = answered(status, body)
	}
	return err
}

// remove removes what the path names at the host. found is false if the host does not
// have it.
func (u *hostURL) remove(ctx context.Context, path string, stdin io.Reader) (found bool, err error) {
	_, status, body, err := u.ask(ctx, http.MethodDelete, path, "admin", maxReply, stdin)
	if err == nil && status != http.StatusNoContent && status != http.StatusNotFound {
		err = answered(status, body)
	}
	return status != http.StatusNotFound, err
}
