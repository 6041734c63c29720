package reasons

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/transport"
)

// Reasons are attributed to the ranks that gave them, as many as fit.
func TestReasonsSurviveTheirText(t *testing.T) {
	long := strings.Repeat("x", 2*transport.ReasonBytes)
	for _, c := range []struct{ why, want []string }{
		{nil, nil},
		{[]string{""}, []string{""}},
		{[]string{"a", "", "b", "a", "-"}, []string{"a", "", "b", "a", "-"}},
		{[]string{" a\n\tb\x00c \xff"}, []string{"a b c \ufffd"}},
		{[]string{long + "1", "y" + long, "z" + long, "short", long + "2"},
			[]string{long[:237] + "...", "y" + long[:236] + "...", "", "short", long[:237] + "..."}},
		{slices.Repeat([]string{"same"}, 100), append(slices.Repeat([]string{"same"}, 64), make([]string, 36)...)},
	} {
		text := Write(c.why)
		require.LessOrEqual(t, len(text), transport.TextBytes)
		got := Read(text, len(c.why))
		require.Equal(t, append([]string{}, c.want...), got)
		require.Equal(t, text, Write(got), "what was read says the same")
	}
	var many []string
	for i := range 64 {
		many = append(many, fmt.Sprint(i))
	}
	require.Equal(t, many, Read(Write(many), 64))
}

// Between processes the text of a failure may be any bytes.
func FuzzReadReasons(f *testing.F) {
	f.Add(Write([]string{"a", "b"}), 2)
	f.Add("0000\n\x1b[2J\n", 9)
	f.Add("\xff~z/:", 3)
	f.Fuzz(func(t *testing.T, text string, n int) {
		n = int(uint(n) % 100)
		why := Read(text, n)
		if len(why) != n {
			t.Fatalf("%d reasons for %d ranks", len(why), n)
		}
		for _, w := range why {
			if len(w) > transport.ReasonBytes || w != Line(w) || bytes.ContainsAny([]byte(w), "\n\x1b\x00") {
				t.Errorf("the reason is %q", w)
			}
		}
	})
}
