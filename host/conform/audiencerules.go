package conform

import (
	"errors"
	"fmt"
	"strings"

	"tether/ahp"
	"tether/jsonrpc"
)

// audienceRules hold for hosts whose marker has audiences. The other client belongs to a
// person who does not own the machine.
var audienceRules = []rule{
	{"a terminal that is granted to nobody does not exist for others", func(r *run) error {
		if _, err := r.listed(r.other); err != nil { // subscribes it to changes of the catalogue
			return err
		}
		if err := r.create(r.terminal(ahp.Audience{})); err != nil {
			return err
		}
		if err := r.print("secret\r\n"); err != nil {
			return err
		}
		return r.hidden("secret")
	}},
	{"unknown names are refused with -32602, and the error lists them", func(r *run) error {
		const nobody = "conform-nobody-has-this-name"
		err := r.audience(r.owner, ahp.Grant{To: ahp.ToEveryone}, ahp.Grant{To: nobody})
		if err := wantCode(err, ahp.MethodAudience, jsonrpc.CodeInvalidParams); err != nil {
			return err
		}
		if e, _ := errors.AsType[*jsonrpc.Error](err); len(ahp.FindRefusedNames(e.Data)) != 1 || ahp.FindRefusedNames(e.Data)[0] != nobody {
			return fmt.Errorf("the error's data is %s, want the name %s alone", e.Data, nobody)
		}
		return r.hidden("secret") // the refused request changed nothing
	}},
	{"only the owner changes an audience", func(r *run) error {
		err := r.audience(r.other, ahp.Grant{To: ahp.ToEveryone})
		if err == nil {
			return fmt.Errorf("%s by another client was accepted", ahp.MethodAudience)
		}
		return r.hidden("secret")
	}},
	{"a grant shows the terminal with what it has printed", func(r *run) error {
		if err := r.audience(r.owner, ahp.Grant{To: ahp.ToEveryone}); err != nil {
			return fmt.Errorf("%s: %w", ahp.MethodAudience, err)
		}
		err := r.until(r.other, "root/terminalsChanged with the terminal in it", func() bool {
			return r.other.toldLocked(ahp.RootURI, func(a ahp.Action) bool { return lists(a, r.uri) })
		})
		if err != nil {
			return err
		}
		st, err := r.state(r.other)
		if err == nil && st.Text() != "secret\r\n" {
			err = fmt.Errorf("the snapshot has %.100q", st.Text())
		}
		return err
	}},
	{"a terminal that is withdrawn ends, and nothing printed later is delivered", func(r *run) error {
		if err := r.audience(r.owner); err != nil {
			return fmt.Errorf("%s: %w", ahp.MethodAudience, err)
		}
		if err := r.print("later\r\n"); err != nil {
			return err
		}
		return r.hidden("later")
	}},
	{"a grant with from shows no earlier output", func(r *run) error {
		if err := r.audience(r.owner, ahp.Grant{To: ahp.ToEveryone, From: r.text}); err != nil {
			return fmt.Errorf("%s: %w", ahp.MethodAudience, err)
		}
		if err := r.print("newest\r\n"); err != nil {
			return err
		}
		st, err := r.state(r.other)
		if err == nil && st.Text() != "newest\r\n" {
			err = fmt.Errorf("the snapshot has %.100q", st.Text())
		}
		return err
	}},
	{"a terminal that is announced again has the audience of the announcement", func(r *run) error {
		if err := r.create(r.terminal(ahp.Audience{})); err != nil {
			return err
		}
		return r.hidden("")
	}},
}

// audience requests an audience of these grants, as a client.
func (r *run) audience(s *session, grants ...ahp.Grant) error {
	return s.conn.Peer().Call(r.ctx, ahp.MethodAudience, ahp.AudienceParams{Channel: r.uri, Audience: ahp.Audience{Grants: grants}}, nil)
}

// hidden checks that the terminal does not exist for the other client, and that the
// client was not sent text, unless that is "".
func (r *run) hidden(text string) error {
	if err := r.settled(); err != nil {
		return err
	}
	if info, err := r.listed(r.other); err != nil || info != nil {
		return fmt.Errorf("another person's catalogue has %+v (%v)", info, err)
	}
	_, got := r.state(r.other)
	if got == nil {
		return errors.New("another person can subscribe to it")
	}
	uri := r.uri
	r.uri += "x"
	_, want := r.state(r.other)
	r.uri = uri
	if code(got) != code(want) || strings.ReplaceAll(got.Error(), uri, "") != strings.ReplaceAll(want.Error(), uri+"x", "") {
		return fmt.Errorf("subscribing is refused with %q, but for a missing terminal with %q", got, want)
	}
	r.other.mu.Lock()
	defer r.other.mu.Unlock()
	for _, e := range r.other.seen {
		if e.channel == r.uri && text != "" && strings.Contains(e.text, text) {
			return fmt.Errorf("another person was sent %.60q", e.text)
		}
	}
	return nil
}
