package agenttools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// query holds the checked arguments of a call.
type query struct {
	since  int64 // offset after which output is read; -1 if not given
	tail   int   // number of lines; 0 means all
	grep   *regexp.Regexp
	bytes  int  // of text
	quoted bool // bytes counts the text as a JSON string
	shows  int  // bytes of the whole answer as JSON; 0 means that only its text is bounded
	format string
}

// query checks the arguments. shows bounds the answer if they have no maxBytes.
func (a *readArgs) query(shows int) (query, error) {
	q := query{since: -1, bytes: shows, quoted: true, shows: shows, format: formatText}
	if a.Since != nil {
		q.since = *a.Since
		if err := inRange("since", q.since, 0, 1<<53); err != nil {
			return q, err
		}
		q.bytes = shows - otherFields - shows/commandShare
	}
	if a.Tail != nil {
		if err := inRange("tail", *a.Tail, 1, maxLines); err != nil {
			return q, err
		}
		q.tail = int(*a.Tail)
	}
	if a.MaxBytes != nil {
		if err := inRange("maxBytes", *a.MaxBytes, 1, maxBytes); err != nil {
			return q, err
		}
		q.bytes, q.quoted, q.shows = int(*a.MaxBytes), false, 0
	}
	if a.Format != "" {
		q.format = a.Format
	}
	if err := oneOf("format", q.format, formatText, formatRaw, formatScreen, formatDigest); err != nil {
		return q, err
	}
	if q.format == formatDigest && (a.Since != nil || a.Tail != nil || a.Grep != "" || a.MaxBytes != nil) {
		return q, errors.New("format digest is of all output: it takes no since, tail, grep or maxBytes")
	}
	var err error
	q.grep, err = pattern("grep", a.Grep)
	return q, err
}

// pattern compiles a regular expression; "" gives nil.
func pattern(name, expr string) (*regexp.Regexp, error) {
	if expr == "" {
		return nil, nil
	}
	if len(expr) > maxPattern {
		return nil, fmt.Errorf("%s has %d bytes, at most %d are allowed", name, len(expr), maxPattern)
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, fmt.Errorf("%s: %w (the syntax is RE2: no look-around, no back-references)", name, err)
	}
	return re, nil
}

// ReadNewest returns the newest 64 KB as text, which is what the tools' contract calls
// the history.
func ReadNewest(ctx context.Context, t Terminal) (*ReadAnswer, error) {
	return query{since: -1, bytes: historyBytes, format: formatText}.read(ctx, t)
}

// read returns the answer to the query.
func (q query) read(ctx context.Context, t Terminal) (*ReadAnswer, error) {
	i := t.Info()
	r := &ReadAnswer{TerminalID: i.ID}
	var begin int64
	var err error
	switch {
	case q.since > i.End:
		return nil, fmt.Errorf("since %d is beyond the end of the output, %d", q.since, i.End)
	case q.format == formatScreen:
		begin, err = q.readScreen(ctx, t, i, r)
	case q.since >= 0:
		begin, err = q.readOn(ctx, t, i, r)
	default:
		begin, err = q.readNewest(ctx, t, i, r)
	}
	if err != nil {
		return nil, err
	}
	i = t.Info() // again, since the exit may have been read
	r.Exited, r.ExitFields = i.Exit != nil, exitOf(i)
	for _, c := range t.Commands() {
		if c.End >= begin && c.Start <= r.Cursor && !(c.End == begin && c.Start < begin) {
			r.Commands = append(r.Commands, cleanCommand(c))
		}
	}
	r.Commands = r.Commands[max(len(r.Commands)-maxCommands, 0):]
	q.shrink(r)
	q.explain(r, i)
	return r, nil
}

// readScreen returns the present screen.
func (q query) readScreen(ctx context.Context, t Terminal, i Info, r *ReadAnswer) (int64, error) {
	s, err := followScreen(ctx, t, i, r)
	if err != nil {
		return 0, err
	}
	r.Screen = &ScreenSize{}
	r.Screen.Cols, r.Screen.Rows = s.Size()
	r.Screen.CursorCol, r.Screen.CursorRow = s.Cursor()
	s.ShowLinks()
	r.History, r.cut = q.choose(s.Text())
	r.Truncated = r.cut || s.Doubtful()
	return max(i.Start, i.End-maxWindow), nil
}

// readOn reads from since on.
func (q query) readOn(ctx context.Context, t Terminal, i Info, r *ReadAnswer) (int64, error) {
	limit := q.bytes
	if q.grep != nil || q.tail > 0 {
		limit = maxWindow
	}
	for {
		c, err := take(ctx, t, q.since, limit)
		if err != nil {
			return 0, err
		}
		if end := t.Info().End; c.next < end {
			r.More = true
			if n := bytes.LastIndexByte(c.data, '\n') + 1; n > 0 {
				c.endAt(n)
			}
		}
		whole, err := q.render(ctx, i, c)
		if err != nil {
			return 0, err
		}
		text, cut := q.choose(whole)
		if cut && q.grep == nil && q.tail == 0 && limit > minBuffer {
			limit /= 2 // the rendered text is longer than the output
			continue
		}
		r.History, r.cut, r.Truncated, r.Cursor, r.Masked = text, cut, cut || c.lost > 0, c.next, c.masks
		r.More = r.More && c.next > q.since
		return q.since, nil
	}
}

// render returns the capture in the format, without an incomplete sequence at the end,
// which the next call gets.
func (q query) render(ctx context.Context, i Info, c *capture) (string, error) {
	s, err := c.render(ctx, i)
	if err != nil {
		return "", err
	}
	if held := s.Pending(); held > 0 && held < min(maxHeld, len(c.data)+1) && i.Exit == nil {
		c.endAt(len(c.data) - held)
	}
	if q.format == formatRaw {
		return strings.ToValidUTF8(string(c.data), "\uFFFD"), nil
	}
	text, _ := s.History()
	return text, nil
}

// readNewest reads the end of the output after q.since. Control sequences make the output
// longer than its text, so it begins further back until there is enough text.
func (q query) readNewest(ctx context.Context, t Terminal, i Info, r *ReadAnswer) (int64, error) {
	window := int64(2 * q.bytes)
	if q.tail > 0 {
		window = min(window, int64(q.tail)*256)
	}
	if q.grep != nil {
		window = maxWindow
	}
	oldest := max(i.Start, q.since)
	for window = max(window, 4<<10); ; window *= 4 {
		window = min(window, maxWindow)
		from := max(oldest, i.End-window)
		c, err := take(ctx, t, from, int(i.End-from)+minBuffer)
		if err != nil {
			return 0, err
		}
		part := from > max(q.since, 0) || c.lost > 0
		if part {
			c.trimStart()
		}
		whole, err := q.render(ctx, i, c)
		if err != nil {
			return 0, err
		}
		text, cut := q.choose(whole)
		enough := cut || q.tail > 0 && q.grep == nil && strings.Count(whole, "\n") > q.tail
		if !enough && from > oldest && window < maxWindow {
			continue
		}
		r.History, r.cut, r.Cursor, r.Masked = text, cut, c.next, c.masks
		r.Truncated = cut || part && (q.tail == 0 || !enough)
		return from, nil
	}
}

// shrink removes the oldest commands and the oldest text from the answer, so that it fits
// what the caller shows. Text that was asked for from an offset on fits already.
func (q query) shrink(r *ReadAnswer) {
	if q.shows == 0 {
		return
	}
	over := func() int { return sizeOf(r) + otherFields/2 - q.shows } // explain and the caller add fields
	for len(r.Commands) > 0 && over() > 0 && sizeOf(r.Commands) > q.shows/commandShare {
		r.Commands = r.Commands[1:]
	}
	if n := over(); n > 0 && q.since < 0 {
		q.bytes = max(sizeOf(r.History)-n, 0)
		r.History, r.cut = q.fit(r.History)
		r.Truncated = r.Truncated || r.cut
	}
}

// sizeOf returns how many bytes a part of an answer has as JSON.
func sizeOf(part any) int {
	body, err := textOf(part)
	if err != nil { // as if it had nothing; the caller meets the error
		return 0
	}
	return len(body)
}

// explain stores in the answer how much output is before the returned part, and how to
// get it.
func (q query) explain(r *ReadAnswer, i Info) {
	more := ""
	if q.shows > 0 {
		more = fmt.Sprintf(", maxBytes returns more, up to %d", maxBytes)
	}
	if all := q.since < 0 && q.format != formatScreen && q.tail == 0 && q.grep == nil; !all || !r.Truncated {
		if r.cut && more != "" {
			r.Hint = "lines before these were left out" + more
		}
		return
	}
	if r.LeftOut = max(r.Cursor-int64(len(r.History)), 0); r.LeftOut == 0 {
		return
	}
	r.Hint = fmt.Sprintf("about %d bytes before this were left out; problems lists errors, format digest sums up%s", r.LeftOut, more)
	if i.Start < r.LeftOut {
		r.Hint += fmt.Sprintf(", since %d reads from the oldest output that is still there", i.Start)
	}
}
