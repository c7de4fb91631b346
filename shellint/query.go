package shellint

// csiQuery is one row of the table of control sequences that a terminal answers, after
// xterm's ctlseqs page and kitty's keyboard protocol page. A terminal's answers, which
// programs sometimes echo, are no queries.
type csiQuery struct {
	prefix, inter, final byte   // 0: none
	first                uint32 // bit n: the first parameter may be n; a missing parameter is 0
	query                Query
}

// anyParam allows any first parameter. Bit 31 stands for 31 and all greater ones.
const anyParam = 1<<32 - 1

var csiQueries = [...]csiQuery{
	{0, 0, 'n', 1 << 5, QueryStatus},
	{0, 0, 'n', 1 << 6, QueryCursor},
	{0, 0, 'n', anyParam &^ (1<<0 | 1<<3), QueryDevice}, // 0 and 3 are the answers to 5
	{'?', 0, 'n', 1 << 6, QueryCursor},
	{'?', 0, 'n', anyParam, QueryDevice},
	{0, 0, 'c', 1 << 0, QueryDA1},
	{'>', 0, 'c', 1 << 0, QueryDA2},
	{'=', 0, 'c', 1 << 0, QueryDA3},
	{'>', 0, 'q', 1 << 0, QueryVersion},
	{0, '$', 'p', anyParam, QueryMode},
	{'?', '$', 'p', anyParam, QueryMode},
	{0, 0, 't', 1<<11 | 1<<13 | 1<<14 | 1<<15 | 1<<16 | 1<<18 | 1<<19 | 1<<20 | 1<<21, QueryWindow},
	{'?', 0, 'u', anyParam, QueryKeyboard},
	{'?', 0, 'm', anyParam, QueryOther},  // XTQMODKEYS
	{'?', 0, 'S', anyParam, QueryOther},  // XTSMGRAPHICS
	{0, 0, 'x', 1<<0 | 1<<1, QueryOther}, // DECREQTPARM
	{0, '*', 'y', anyParam, QueryOther},  // DECRQCRA
	{0, '$', 'u', anyParam, QueryOther},  // DECRQTSR
	{0, 0, 'i', anyParam, QueryOther},    // MC prints, which a person's terminal must not do for a program elsewhere
	{'?', 0, 'i', anyParam, QueryOther},
	{0, '$', 'w', anyParam, QueryOther},  // DECRQPSR
	{0, '&', 'u', anyParam, QueryOther},  // DECRQUPSS
	{0, '"', 'v', anyParam, QueryOther},  // DECRQDE
	{0, '\'', '|', anyParam, QueryOther}, // DECRQLP
	{0, '#', 'R', anyParam, QueryOther},  // XTREPORTCOLORS
	{0, '#', '|', anyParam, QueryOther},  // XTREPORTSGR
}

// asksAfter says for each final byte whether a CSI sequence that ends with it may be a
// query: csiAlways, or csiPrivate if only with a "?". It keeps SGR, the most frequent
// sequence, off the slow path.
var asksAfter = func() (t [256]uint8) {
	for _, q := range csiQueries {
		if q.prefix == '?' && q.inter == 0 {
			t[q.final] |= csiPrivate
		} else {
			t[q.final] |= csiAlways
		}
	}
	return t
}()

const (
	csiPrivate = 1 << iota
	csiAlways
)

// parseCSI judges a control sequence whose parameters begin at b[n].
func parseCSI(b []byte, n int) introducer {
	var prefix, inter byte
	first, fields, malformed := uint64(0), 0, false
	for ; n < len(b); n++ {
		c := b[n]
		switch {
		case inert(c):
		case c >= 0x40 && c < del:
			return csiVerdict(csiQuery{prefix: prefix, inter: inter, final: c}, first, n+1, malformed)
		case c < 0x20 || c > del:
			return introducer{verdict: foreign}
		case c < 0x30:
			malformed = malformed || inter != 0
			inter = c
		case inter != 0:
			malformed = true
		case c >= '<':
			malformed = malformed || prefix != 0 || fields > 0 || first > 0
			prefix = c
		case c >= ':':
			fields++
		case fields == 0:
			first = min(first*10+uint64(c-'0'), 1<<32)
		}
	}
	return introducer{}
}

// csiVerdict looks a complete control sequence of n bytes up in the table.
func csiVerdict(k csiQuery, first uint64, n int, malformed bool) introducer {
	if malformed {
		return introducer{verdict: foreign}
	}
	for _, q := range csiQueries {
		if q.prefix != k.prefix || q.inter != k.inter || q.final != k.final {
			continue
		}
		if first < 32 && q.first>>first&1 == 1 || first >= 32 && q.first>>31 == 1 {
			return introducer{verdict: known, n: n, class: ClassQuery, ps: -1, query: q.query, whole: true}
		}
	}
	return introducer{verdict: foreign}
}

// parseDCS judges a device control string whose parameters begin at b[n]. Only DECRQSS ($
// q) and XTGETTCAP (+ q) are queries.
func parseDCS(b []byte, n int) introducer {
	var inter byte
	for ; n < len(b); n++ {
		c := b[n]
		switch {
		case inert(c), inter == 0 && c >= '0' && c <= ';':
		case inter == 0 && (c == '$' || c == '+'):
			inter = c
		case inter != 0 && c == 'q':
			in := introducer{verdict: known, n: n + 1, class: ClassQuery, ps: -1, dcs: true, query: QuerySetting}
			if inter == '+' {
				in.query = QueryTermcap
			}
			return in
		default:
			return introducer{verdict: foreign}
		}
	}
	return introducer{}
}

// asks reports whether a control sequence with a first parameter byte may be a query.
func asks(first, final byte) bool {
	asks := asksAfter[final]
	return asks != 0 && (asks != csiPrivate || first == '?')
}
