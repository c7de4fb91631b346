package host_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tether/host"
)

func TestLogIsBounded(t *testing.T) {
	for _, test := range []struct {
		name            string
		bytes, count    int
		sizes           []int
		want            []int64 // serverSeq kept: the nth added has 10n
		wantBytes, lost int64
	}{
		{"by bytes", 100, 10, []int{40, 40, 40}, []int64{20, 30}, 80, 10},
		{"by number", 100, 2, []int{1, 1, 1}, []int64{20, 30}, 2, 10},
		{"one alone may be larger", 100, 10, []int{40, 400}, []int64{20}, 400, 10},
		{"nothing dropped", 100, 10, []int{1, 2, 3, 4, 5}, []int64{10, 20, 30, 40, 50}, 15, 0},
		{"many", 1000, 7, make([]int, 100), []int64{940, 950, 960, 970, 980, 990, 1000}, 0, 930},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := host.NewLog(test.bytes, test.count)
			for i, size := range test.sizes {
				l.Add(int64(10*(i+1)), size)
			}
			seqs, bytes, lost := l.State()
			if diff := cmp.Diff(test.want, seqs); diff != "" || bytes != test.wantBytes || lost != test.lost {
				t.Errorf("%d bytes, lost %d, want %d and %d; %s", bytes, lost, test.wantBytes, test.lost, diff)
			}
		})
	}
}

func TestLogAfter(t *testing.T) {
	l := host.NewLog(1000, 4)
	for seq := int64(10); seq <= 60; seq += 10 {
		l.Add(seq, 1)
	} // 30 to 60 are left
	for _, test := range []struct {
		seq, left int64
		whole     bool
	}{
		{60, 0, true}, {55, 1, true}, {30, 3, true}, {29, 4, true}, {20, 4, true}, {19, 4, false}, {0, 4, false}, {99, 0, true},
	} {
		if left, whole := l.After(test.seq); left != test.left || whole != test.whole {
			t.Errorf("after %d: %d entries, whole %t, want %d and %t", test.seq, left, whole, test.left, test.whole)
		}
	}
}
