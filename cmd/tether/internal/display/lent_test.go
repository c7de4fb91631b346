package display

import (
	"testing"
	"time"

	"tether/agent/localapi"
	"tether/vocab"
)

// A list shows where a terminal is lent, the time left, and the number of watchers; in
// full also since when, if not from its start.
func TestLentText(t *testing.T) {
	now, watch, none := time.Now(), 2, 0
	until := now.Add(30*time.Minute + 30*time.Second)
	for _, c := range []struct {
		short, full string
		loans       []localapi.Loan
	}{
		{"-", "-", nil},
		{"lab", "lab", []localapi.Loan{{Host: "lab", Since: now.Add(-time.Hour), Observers: &none}}},
		{"lab", "lab (since 20m)", []localapi.Loan{{Host: "lab", Since: now.Add(-20 * time.Minute)}}},
		{"lab (30m left), b", "lab (since 20m, 30m left), b", []localapi.Loan{{Host: "lab", Since: now.Add(-20 * time.Minute), Until: &until}, {Host: "b", Since: now.Add(-time.Hour)}}},
		{"lab (2, 30m left)", "lab (2 watching, 30m left)", []localapi.Loan{{Host: "lab", Since: now.Add(-time.Hour), Until: &until, Observers: &watch}}},
		{"lab (0s left)", "lab (since 20m, 0s left)", []localapi.Loan{{Host: "lab", Since: now.Add(-20 * time.Minute), Until: &now}}},
	} {
		terminal := localapi.Terminal{Started: now.Add(-time.Hour), Loans: c.loans}
		if got := Lent(terminal); got != c.short {
			t.Errorf("%+v: %q, want %q", c.loans, got, c.short)
		}
		if got := LentInFull(terminal); got != c.full {
			t.Errorf("%+v in full: %q, want %q", c.loans, got, c.full)
		}
	}
	if got := Lent(localapi.Terminal{Private: true}); got != "private" {
		t.Errorf("private: %q", got)
	}
}

// A person is told the truth about a lent terminal: who watches, and that nobody can if
// the host is away or refuses it.
func TestMessagesAboutALoan(t *testing.T) {
	two := 2
	since := time.Now()
	at := Clock(since)
	said := &vocab.Watchers{May: []string{"ann", "group:web"}, Refused: []string{"bbo"}, More: 2,
		Watching: []vocab.Watcher{{Who: "ann\x1b[2J", Kind: "person", Since: since}, {Who: "ci", Kind: "agent", Since: since}}}
	for _, c := range []struct {
		loans                []localapi.Loan
		visible, short, full string
	}{
		{[]localapi.Loan{{Host: "lab", State: localapi.LoanThere, Observers: &two}}, "is visible to lab (2 watching)", "lab (2)", "lab (2 watching)"},
		{[]localapi.Loan{{Host: "lab", State: localapi.LoanThere, Observers: &two, Watchers: said, Audience: &localapi.Audience{To: []string{"ann", "group:web"}, FromNow: []string{"ann"}, NotTo: []string{"bob"}}}},
			"is visible to lab (4 watching: ann�[2J since " + at + ", ci (agent) since " + at + ", 2 more; may watch: ann, group:web; does not know: bbo; as the host says)",
			"lab (4, to ann and 1 more)",
			"lab (to ann, group:web; new output only for ann; not to bob, 4 watching, as the host says: ann�[2J since " + at + ", ci (agent) since " + at + ", 2 more)"},
		{[]localapi.Loan{{Host: "lab", State: localapi.LoanThere, Watchers: &vocab.Watchers{May: []string{"everyone"}}, Audience: &localapi.Audience{}}},
			"is visible to lab (0 watching)", "lab", "lab"},
		{[]localapi.Loan{{Host: "lab", State: localapi.LoanThere}}, "is visible to lab", "lab", "lab"}, // the host does not say
		{[]localapi.Loan{{Host: "lab", State: localapi.LoanPending}}, "is visible to lab (0 watching)", "lab (pending)", "lab (pending)"},
		{[]localapi.Loan{{Host: "lab", State: localapi.LoanOffline}}, "is shared with lab; lab is offline; output is sent when it reconnects", "lab (offline)", "lab (offline)"},
		{[]localapi.Loan{{Host: "lab", State: localapi.LoanRefused}}, "is not visible to lab, which refuses it; tether status shows the reason and the next attempt", "lab (refused)", "lab (refused)"},
		{[]localapi.Loan{{Host: "a", State: localapi.LoanThere, Observers: &two}, {Host: "b", State: localapi.LoanOffline}},
			"is visible to a (2 watching); is shared with b; b is offline; output is sent when it reconnects", "a (2), b (offline)", "a (2 watching), b (offline)"},
	} {
		now := time.Now()
		for i := range c.loans {
			c.loans[i].Since = now
		}
		terminal := localapi.Terminal{ID: "pty-a", Started: now, Loans: c.loans}
		if got := Visible(terminal); got != c.visible {
			t.Errorf("%+v: says %q, want %q", c.loans, got, c.visible)
		}
		if got := Lent(terminal); got != c.short {
			t.Errorf("%+v: lists %q, want %q", c.loans, got, c.short)
		}
		if got := LentInFull(terminal); got != c.full {
			t.Errorf("%+v: lists in full %q, want %q", c.loans, got, c.full)
		}
	}
	for count, want := range map[localapi.Count]string{
		{Running: 3, Lent: 2, There: 2, Exited: 1}: "3 running (2 lent), 1 exited",
		{Running: 29, Lent: 29}:                    "29 running (0 lent, 29 to be lent), 0 exited",
	} {
		if got := Counts(count); got != want {
			t.Errorf("%+v: %q, want %q", count, got, want)
		}
	}
}
