package login

import (
	"testing"
	"testing/synctest"
	"time"

	"tether/host/rights"
)

func TestSessionsEndWithTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		code, cookie := s.Launch(rights.Principal{Name: "a"}), s.Login(rights.Principal{Name: "b"}, rights.ProofNow)
		time.Sleep(11 * time.Minute)
		if _, ok := s.Follow(code); ok {
			t.Error("a link of eleven minutes ago works")
		}
		p, ok := s.Find(cookie)
		if !ok || p.Name != "b" || p.Live.Err() != nil {
			t.Errorf("the browser is %+v, %v", p, ok)
		}
		time.Sleep(12 * time.Hour)
		if p.Live.Err() == nil {
			t.Error("what a browser opened within twelve hours goes on after them")
		}
		if _, ok := s.Find(cookie); ok {
			t.Error("a browser of twelve hours ago is logged in")
		}
		first := s.Launch(rights.Principal{})
		for range 1000 {
			time.Sleep(time.Millisecond)
			s.Launch(rights.Principal{})
		}
		if launches := s.launches.Len(); launches > 256 {
			t.Errorf("%d links are remembered", launches)
		}
		if _, ok := s.Follow(first); ok {
			t.Error("the oldest of too many links works")
		}
	})
}

// A login is young for a quarter of an hour.
func TestLoginsGrowOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := New(Options{})
		cookie := x.Login(rights.Principal{Name: "ann", Role: rights.RoleObserver}, rights.ProofNow)
		time.Sleep(14 * time.Minute)
		if x.Fresh(cookie) != nil {
			t.Error("old after 14 minutes")
		}
		time.Sleep(2 * time.Minute)
		if x.Fresh(cookie) == nil || x.Fresh("another") == nil {
			t.Error("young after 16 minutes")
		}
	})
}
