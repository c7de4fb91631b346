package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
)

func linkCommand(stdin io.Reader, stdout io.Writer) *cobra.Command {
	var u hostURL
	c := &cobra.Command{
		Use: "link", Short: "print a link that opens a host's page in a browser, once",
		Long: `Prints a link to the page of a host that runs. It logs one browser in, as whom the token is for, and can be followed
once, within ten minutes. The token is that of an observer or administrator.`,
		Args: exactly(0, "no argument"),
		RunE: func(c *cobra.Command, _ []string) error {
			link, err := askLink(c.Context(), &u, stdin)
			if err == nil {
				_, err = fmt.Fprintln(stdout, link)
			}
			return err
		},
	}
	u.flags(c)
	return c
}

// askLink asks the host for a link.
func askLink(ctx context.Context, u *hostURL, stdin io.Reader) (string, error) {
	token, err := u.token(stdin)
	if err != nil {
		return "", err
	}
	target, err := u.at("launch", true, token != "")
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target, nil)
	if err != nil {
		return "", err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(r)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err // without the URL
		}
		return "", fmt.Errorf("ask the host: %w", err)
	}
	defer answer.Body.Close()
	const most = 4 << 10
	body, err := io.ReadAll(io.LimitReader(answer.Body, most))
	if err != nil {
		return "", fmt.Errorf("ask the host: %w", err)
	}
	if answer.StatusCode == http.StatusUnauthorized && token == "" {
		return "", errors.New("the host wants a token; --token-file FILE names one (tether-host token create NAME --role observer makes it)")
	}
	var got struct{ Path string }
	if answer.StatusCode != http.StatusOK || json.Unmarshal(body, &got) != nil || !strings.HasPrefix(got.Path, "/") || printable(got.Path) != got.Path {
		return "", fmt.Errorf("the host answers %d: %s", answer.StatusCode, bytes.TrimSpace(body[:min(len(body), 200)]))
	}
	return strings.TrimSuffix(target, "/launch") + got.Path, nil
}
