package localclient

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"tether/agent/localapi"
	"tether/internal/jsonspan"
)

// RunOptions choose kept runs. Zero fields choose all.
type RunOptions struct {
	Name  string // a name, command line, or the id of a run or terminal
	Dir   string // absolute; in it or below it
	Since time.Time
	Max   int // most runs or hits; 0 means 100
}

func (o RunOptions) values() url.Values {
	q := url.Values{}
	set := func(name, value string, is bool) {
		if is {
			q.Set(name, value)
		}
	}
	set("name", o.Name, o.Name != "")
	set("dir", o.Dir, o.Dir != "")
	set("since", o.Since.UTC().Format(time.RFC3339Nano), !o.Since.IsZero())
	set("max", strconv.Itoa(o.Max), o.Max != 0)
	return q
}

// Runs calls each with the kept runs, the one that began last first. It reports whether
// there are more than Max.
func (c *Client) Runs(ctx context.Context, o RunOptions, each func(*localapi.Run)) (more bool, err error) {
	err = lines(ctx, c, "/v1/runs?"+o.values().Encode(), func(x *localapi.RunLine) bool {
		if x.Run == nil {
			more = x.More
			return false
		}
		each(x.Run)
		return true
	})
	return more, err
}

// SearchOptions are what Search looks for.
type SearchOptions struct {
	RunOptions
	Pattern    string // RE2, or with Fixed a text
	Fixed      bool
	IgnoreCase bool
	Context    int           // lines before and after each hit
	Timeout    time.Duration // after which the search ends with what it has; 0 means 10 s
}

// Search calls each with the lines of kept runs that match, the newest first, and returns
// how far it came.
func (c *Client) Search(ctx context.Context, o SearchOptions, each func(*localapi.Hit)) (end localapi.FoundLine, err error) {
	q := o.values()
	q.Set("pattern", o.Pattern)
	q.Set("context", strconv.Itoa(o.Context))
	if o.Fixed {
		q.Set("fixed", "1")
	}
	if o.IgnoreCase {
		q.Set("ignore_case", "1")
	}
	if o.Timeout > 0 {
		q.Set("timeout_ms", strconv.FormatInt(max(o.Timeout.Milliseconds(), 1), 10))
	}
	err = lines(ctx, c, "/v1/runs/search?"+q.Encode(), func(x *localapi.FoundLine) bool {
		if x.Hit == nil {
			end = *x
			return false
		}
		each(x.Hit)
		return true
	})
	return end, err
}

// lines calls each with the lines of an answer until it returns false. An answer that
// ends before is an ErrDropped.
func lines[T any](ctx context.Context, c *Client, path string, each func(*T) bool) error {
	resp, err := c.send(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	in := bufio.NewScanner(resp.Body)
	in.Buffer(make([]byte, 0, 32<<10), maxHappening)
	for in.Scan() {
		var x T
		if err := jsonspan.Unmarshal(in.Bytes(), &x); err != nil {
			return fmt.Errorf("the daemon's answer: %w", err)
		}
		if !each(&x) {
			return nil
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return ErrDropped
}

func runPath(ref, rest string) string { return "/v1/runs/" + segment(ref) + rest }

// RunText opens the text of a kept run: of its last lines, of one command of a shell, or
// all. The caller must close it.
func (c *Client) RunText(ctx context.Context, ref string, lines, command int) (io.ReadCloser, error) {
	q := url.Values{}
	if lines > 0 {
		q.Set("lines", strconv.Itoa(lines))
	}
	if command > 0 {
		q.Set("command", strconv.Itoa(command))
	}
	resp, err := c.send(ctx, http.MethodGet, runPath(ref, "/output?"+q.Encode()), nil)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// RunProblems returns the problems that tools reported in a kept run.
func (c *Client) RunProblems(ctx context.Context, ref string, o ProblemOptions) (localapi.ProblemList, error) {
	return ask[localapi.ProblemList](ctx, c, http.MethodGet, runPath(ref, "/problems?"+o.query()), nil)
}

// RunDigest returns a summary of a kept run's text.
func (c *Client) RunDigest(ctx context.Context, ref string) (localapi.Digest, error) {
	return ask[localapi.Digest](ctx, c, http.MethodGet, runPath(ref, "/digest"), nil)
}

// Forget removes runs from the history and from memory.
func (c *Client) Forget(ctx context.Context, r localapi.ForgetRequest) (localapi.Forgotten, error) {
	return ask[localapi.Forgotten](ctx, c, http.MethodPost, "/v1/runs/forget", r)
}

// Compare compares a run, or the newest of a name, with another; with "" with the last
// good one before.
func (c *Client) Compare(ctx context.Context, o RunOptions, with string) (localapi.Comparison, error) {
	q := o.values()
	if with != "" {
		q.Set("with", with)
	}
	return ask[localapi.Comparison](ctx, c, http.MethodGet, "/v1/runs/compare?"+q.Encode(), nil)
}

// Verdicts judges the series with these names, or all.
func (c *Client) Verdicts(ctx context.Context, names []string, dir string) (localapi.VerdictList, error) {
	q := RunOptions{Dir: dir}.values()
	q["name"] = names
	return ask[localapi.VerdictList](ctx, c, http.MethodGet, "/v1/runs/verdict?"+q.Encode(), nil)
}
