package channel

import (
	"testing"

	"github.com/google/go-cmp/cmp"
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
			c := NewOrder(nil, 0, Limits{Bytes: test.bytes, Count: test.count}).NewChannel("")
			for i, size := range test.sizes {
				c.Add(Entry{Piece: Piece{int64(10 * (i + 1)), make([]byte, size)}}, nil)
			}
			var seqs []int64
			all, _ := c.Entries(c.log.first)
			for _, e := range all {
				seqs = append(seqs, e.Seq)
			}
			if diff := cmp.Diff(test.want, seqs); diff != "" || c.Bytes() != test.wantBytes || c.log.lost != test.lost {
				t.Errorf("%d bytes, lost %d, want %d and %d; %s", c.Bytes(), c.log.lost, test.wantBytes, test.lost, diff)
			}
		})
	}
}

func TestShrinkFreesTheRing(t *testing.T) {
	c := NewOrder(nil, 0, Limits{Bytes: 1 << 20, Count: 4096}).NewChannel("")
	for seq := range int64(4096) {
		c.Add(Entry{Piece: Piece{seq + 1, []byte("x")}}, nil)
	}
	c.Shrink(100)
	if n, room := c.log.next-c.log.first, c.log.kept.Cap(); n != 100 || room > 4*int(n) {
		t.Errorf("there is room for %d envelopes, of which %d are left", room, n)
	}
}

func TestLogAfter(t *testing.T) {
	c := NewOrder(nil, 0, Limits{Bytes: 1000, Count: 4}).NewChannel("")
	for seq := int64(10); seq <= 60; seq += 10 {
		c.Add(Entry{Piece: Piece{seq, []byte{0}}}, nil)
	} // 30 to 60 are left
	for _, test := range []struct {
		seq, left int64
		whole     bool
	}{
		{60, 0, true}, {55, 1, true}, {30, 3, true}, {29, 4, true}, {20, 4, true}, {19, 4, false}, {0, 4, false}, {99, 0, true},
	} {
		i, whole := c.log.after(test.seq)
		if left := c.log.next - i; left != test.left || whole != test.whole {
			t.Errorf("after %d: %d entries, whole %t, want %d and %t", test.seq, left, whole, test.left, test.whole)
		}
	}
}
