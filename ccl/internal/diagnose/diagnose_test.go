package diagnose

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The first key in alphabetical order counts, wherever its line is; a key may be missing.
func TestSetting(t *testing.T) {
	for _, c := range []struct {
		texts  []string
		key    string
		values []string
	}{
		{[]string{"b=1\na=2\n", "a=2\nb=1\n"}, "", nil},
		{[]string{"", ""}, "", nil},
		{[]string{"b=1\na=2\n", "b=2\na=3\n"}, "a", []string{"2", "3"}},
		{[]string{"c=1=2\n", "", "c=1=2\n"}, "c", []string{"1=2", "unset", "1=2"}},
	} {
		key, values := Setting(c.texts)
		require.Equal(t, c.key, key)
		require.Equal(t, c.values, values)
	}
}

// Short lists stay whole. Of long ones the first difference is shown, even if one ends before it.
func TestShorten(t *testing.T) {
	long := strings.Repeat("7 ", 50)
	for _, c := range []struct{ texts, want []string }{
		{[]string{"[1 2]", "[1 3]"}, []string{"[1 2]", "[1 3]"}},
		{[]string{"[" + long + "1 2]", "[" + long + "1 3]"}, []string{"2 at index 51 of 52", "3 at index 51 of 52"}},
		{[]string{"[" + long + "1]", "[7 7]"}, []string{"7 at index 2 of 51", "only 2 numbers"}},
	} {
		Shorten(c.texts)
		require.Equal(t, c.want, c.texts)
	}
}
