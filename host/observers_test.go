package host_test

import (
	"testing"
	"testing/synctest"

	"tether/ahp"
	"tether/host"
)

// The owner is told how many watch, whenever that changes and when it comes back, and nobody else is.
func TestObserversAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{})
		owner := connect(t, h, "laptop", viewOptions{resume: true})
		owner.create(uri)
		want := func(o *viewer, n int64) {
			t.Helper()
			o.await("the number of observers", func() bool { got, told := o.observers[uri]; return told && got == n })
		}
		want(owner, 0)
		if err := owner.subscribe(uri); err != nil { // its own does not count
			t.Fatal(err)
		}
		one, two := connect(t, h, "one", viewOptions{resume: true}), connect(t, h, "two", viewOptions{})
		for n, v := range []*viewer{one, two} {
			if err := v.subscribe(uri); err != nil {
				t.Fatal(err)
			}
			want(owner, int64(n+1))
		}
		if err := one.subscribe(uri); err != nil { // again
			t.Fatal(err)
		}
		owner.ping()
		want(owner, 2)
		if err := one.peer.Notify(t.Context(), ahp.MethodUnsubscribe, ahp.UnsubscribeParams{Channel: uri}); err != nil {
			t.Fatal(err)
		}
		want(owner, 1)
		again, _, err := reconnect(t, h, owner)
		if err != nil {
			t.Fatal(err)
		}
		again.create(uri)
		want(again, 1)
		two.close()
		want(again, 0)
		if len(one.observers) > 0 {
			t.Error("an observer is told who watches")
		}
	})
}

// Who did not show our marker is sent nothing that it may not know.
func TestObserversAreToldToWhoKnowsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{})
		owner := connect(t, h, "other", viewOptions{})
		owner.create(uri)
		if err := connect(t, h, "one", viewOptions{}).subscribe(uri); err != nil {
			t.Fatal(err)
		}
		owner.ping()
		synctest.Wait()
		if len(owner.observers) > 0 {
			t.Error("it was told who watches")
		}
	})
}
