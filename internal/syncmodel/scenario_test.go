package syncmodel

import (
	"fmt"
	"strings"
	"testing"
)

var flat = []mode{spinning, sleeping}
var all = []mode{spinning, sleeping, parked}
var spin = []mode{spinning}
var slp = []mode{sleeping}
var prk = []mode{parked}
var spinpark = []mode{spinning, parked}

type scenario struct {
	modes   []mode
	scripts string
	want    string
}

var scenarios = []scenario{
	{all, "iwi iwi", "none"},
	{flat, "wiiw wiiw", "none"},
	{flat, "iw? iw?", "none"},
	{prk, "imi imi", "none"},
	{prk, "ii? ii?", "none"},
	{prk, "lil lil", "none"},
	{prk, "ll? ll?", "none"},
	{spin, "iwi iwi iwi", "none"},
	{slp, "i? i? i?", "none"},
	{prk, "l? l? l?", "none"},

	{all, "iri? iri?", "none"},
	{all, "rri rri", "none"},
	{all, "riri riri", "none"},
	{spin, "iri iri iri", "none"},

	{all, "iri iii", "arguments"},
	{all, "rri rii", "arguments"},
	{all, "ir ii", "arguments"},
	{all, "wrw www", "arguments"},
	{spinpark, "r i i", "arguments"},
	{spinpark, "r r i", "arguments"},
	{spinpark, "ri ri ii", "arguments"},

	{all, "iw ii", "mismatch"},
	{all, "w i", "mismatch"},
	{prk, "m i", "mismatch"},
	{all, "W i", "mismatch cancelled"},
	{all, "w I", "mismatch cancelled"},
	{spinpark, "W w i", "mismatch cancelled"},

	{all, "i -", "lost"},
	{all, "ii i", "lost"},
	{all, "ww w", "lost"},
	{all, "rri rr", "lost"},
	{prk, "mm m", "lost"},
	{spinpark, "ww ww w", "lost"},
	{spinpark, "ii i ii", "lost"},

	{all, "ii i!", "aborted"},
	{all, "ww w!", "aborted"},
	{all, "w! w!", "aborted"},
	{prk, "mm m!", "aborted"},
	{spinpark, "ww w! ww", "aborted"},
	{spinpark, "w! w w", "aborted"},
	{spinpark, "ii i! i", "aborted lost"},

	{all, "I i", "none cancelled"},
	{all, "Ii ii", "none cancelled"},
	{all, "W? w?", "none cancelled"},
	{all, "W? W?", "none cancelled"},
	{all, "wW ww", "none cancelled"},
	{all, "WW WW", "none cancelled"},
	{all, "rI ri", "none cancelled"},
	{spinpark, "I i i", "none cancelled"},
	{spinpark, "W w w", "none cancelled"},
	{spinpark, "W W w", "none cancelled"},
	{all, "W w!", "aborted cancelled"},
	{all, "Ww w", "lost cancelled"},
	{prk, "L? l?", "none cancelled"},
	{prk, "L l l", "none cancelled"},
	{prk, "M M", "none cancelled"},

	{all, "x w", "panicked"},
	{all, "x W", "panicked cancelled"},
	{spinpark, "x w w", "panicked"},

	{all, "i ?", "cancelled"},
	{all, "ww w?", "cancelled"},
	{all, "ri r?", "cancelled"},
	{spinpark, "w ? w", "cancelled"},
}

func (s scenario) model(m mode, without rule) *model {
	return newModel(m, without, strings.Fields(s.scripts))
}

func (s scenario) String() string { return s.scripts }

func TestProtocol(t *testing.T) {
	ran, states := 0, 0
	for _, row := range scenarios {
		for _, mode := range row.modes {
			n, wrong := row.model(mode, everyRule).explore(row.want)
			ran++
			states += n
			fmt.Println(modeNames[mode], row.scripts, n)
			if wrong != nil {
				t.Errorf("%s, %s: %s violated: %s\n%s", modeNames[mode], row.scripts, wrong.property, wrong.what, wrong.trace)
			}
		}
	}
	t.Logf("%d scenarios, %d states", ran, states)
}

func TestFind(t *testing.T) {
	for r := settles; int(r) < len(ruleWords); r++ {
		fmt.Println("#", r, ruleWords[r])
		for _, row := range scenarios {
			for _, mode := range row.modes {
				if n, wrong := row.model(mode, r).explore(row.want); wrong != nil {
					fmt.Println("   ", modeNames[mode], row.scripts, wrong.property, strings.Count(wrong.trace, "\n"), n)
				}
			}
		}
	}
}
