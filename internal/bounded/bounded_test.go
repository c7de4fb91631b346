package bounded

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

func TestEntriesExpireEachAtItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Map[string, int]
		now := time.Now()
		m.Put("late", 3, now.Add(3*time.Second))
		m.Put("soon", 1, now.Add(time.Second))
		m.Put("again", 0, now.Add(time.Second))
		m.Put("again", 2, now.Add(2*time.Second))
		if m.Add("soon", 9, now.Add(time.Hour)) {
			t.Error("added what is there")
		}
		for i, want := range []map[string]int{{"soon": 1, "again": 2, "late": 3}, {"again": 2, "late": 3}, {"late": 3}, {}} {
			if got := m.All(); !maps.Equal(got, want) || m.Len() != len(want) {
				t.Errorf("after %d s: %v, want %v", i, got, want)
			}
			time.Sleep(time.Second)
		}
		if _, ok := m.Get("late"); ok || !m.Add("late", 4, time.Now().Add(time.Second)) {
			t.Error("an expired entry counts")
		}
		if v, ok := m.Take("late"); v != 4 || !ok {
			t.Errorf("took %d, %v", v, ok)
		}
		if _, ok := m.Take("late"); ok {
			t.Error("took it twice")
		}
	})
}

// However entries come and go, there are never too many, and the one that expires next
// gives way.
func TestTheNextToExpireGivesWay(t *testing.T) {
	m := Map[int, time.Time]{Most: 50}
	begin := time.Now().Add(time.Hour)
	for i := range 2000 {
		at := begin.Add(time.Duration(rand.IntN(1000)) * time.Second)
		all := m.All()
		gone, full := m.Put(i%70, at, at)
		if _, had := all[i%70]; full != (!had && len(all) == 50) {
			t.Fatalf("full is %v with %d entries", full, len(all))
		}
		for _, until := range all {
			if full && until.Before(gone) {
				t.Fatalf("%v gave way before %v", gone, until)
			}
		}
		if i%3 == 0 {
			m.Take(rand.IntN(70))
		}
	}
}

func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := Rates{Burst: 2, Every: time.Second}
		for i, c := range []struct {
			key     string
			allowed bool
		}{{"a", true}, {"a", true}, {"a", false}, {"b", true}} {
			if r.Allow(c.key) != c.allowed {
				t.Errorf("%d: each key has two tries", i)
			}
		}
		if spent, first := r.Spent("a"); !spent || !first {
			t.Error("a has tries")
		}
		if spent, first := r.Spent("a"); !spent || first {
			t.Error("a second refusal is a first one")
		}
		if spent, _ := r.Spent("c"); spent {
			t.Error("who is unknown has no tries")
		}
		time.Sleep(time.Second)
		if spent, _ := r.Spent("a"); spent || r.Len() != 1 {
			t.Errorf("after a second: spent %v, %d keys", spent, r.Len())
		}
		if r.Allow("a"); r.Allow("a") {
			t.Error("more than one came back")
		}
		if _, first := r.Spent("a"); !first {
			t.Error("the first refusal of another row is none")
		}
		for i := range 10_000 { // a flood of places does not free who has tried often
			r.Allow(fmt.Sprint(i))
		}
		if spent, _ := r.Spent("a"); !spent || r.Len() != 4096 {
			t.Errorf("after a flood: spent %v, %d keys", spent, r.Len())
		}
	})
}

func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Slots{All: 3, Each: 2}
		var gives []func()
		for _, key := range []string{"a", "a", "b"} {
			done, ok := s.Try(key)
			if !ok {
				t.Fatalf("no slot for %s", key)
			}
			gives = append(gives, done)
		}
		if _, ok := s.Try("c"); ok {
			t.Error("more than three in all")
		}
		took := make(chan func(), 2)
		for _, keys := range [][]string{{"b", "a"}, {"b", "c"}} { // the first has to wait, and keeps nobody from b
			go func() {
				if done, err := s.Take(t.Context(), keys...); err == nil {
					took <- done
				}
			}()
		}
		synctest.Wait()
		gives[2]()
		synctest.Wait()
		if len(took) != 1 {
			t.Fatalf("%d took the free slot", len(took))
		}
		if _, ok := s.Try("b"); ok {
			t.Error("more than three in all")
		}
		gives[0]()
		synctest.Wait()
		if len(took) != 2 {
			t.Errorf("%d took two free slots", len(took))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Take(ctx, "c"); err == nil {
			t.Error("took a slot that there is not")
		}
	})
	var none Slots
	for range 100 {
		if _, ok := none.Try("a"); !ok {
			t.Fatal("without bounds there is one")
		}
	}
}
