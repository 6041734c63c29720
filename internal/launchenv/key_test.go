package launchenv

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKey(t *testing.T) {
	require.Equal(t, "slurm-17-0-0", key("slurm", "17", "0", "0"))
	require.Equal(t, "slurm-1_7-0-0-"+digest("1/7", "0", "0"), key("slurm", "1/7", "0", "0"))
	require.NotEqual(t, key("x", "a-b", "c"), key("x", "a", "b-c"))
	require.NotEqual(t, key("x", "a", ""), key("x", "", "a"))
	require.NotEqual(t, digest("ab", "c"), digest("a", "bc"))

	require.Equal(t, "train-17", keyOfName("train-17"))
	require.Equal(t, "_.-"+digest(".."), keyOfName(".."))
	long := strings.Repeat("n", 64)
	require.Equal(t, long, keyOfName(long))
	require.NotEqual(t, keyOfName(long+"1"), keyOfName(long+"2"))
}

// The key of any name is a valid file name, and no other name has it.
func FuzzKeyOfName(f *testing.F) {
	for _, name := range []string{"train-17", ".", "..", ".x", "ä ö", "\xff\n", strings.Repeat("long", 20)} {
		f.Add(name, name+"x")
	}
	plain := regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$`)
	f.Fuzz(func(t *testing.T, a, b string) {
		if a == "" || b == "" {
			t.Skip("refused before")
		}
		for _, k := range []string{keyOfName(a), key("pmi", a, b)} {
			if !plain.MatchString(k) {
				t.Errorf("%q, %q: %q is no name of a file", a, b, k)
			}
		}
		if a != b && keyOfName(a) == keyOfName(b) {
			t.Errorf("%q and %q have one key", a, b)
		}
	})
}

func TestParseStat(t *testing.T) {
	p, err := parseStat("26962 (hydra_pmi_proxy) S 26961 26961 26944 0 -1 4194304 300 0 0 0 0 0 0 0 20 0 1 0 8190345 3461120 780 18446744073709551615\n")
	require.NoError(t, err)
	require.Equal(t, Process{26962, "hydra_pmi_proxy", "S", 26961, "8190345"}, p)
	p, err = parseStat("7 (a) b (c) Z 5 1 1 0 -1 1 1 0 0 0 0 0 0 0 20 0 1 0 42 1")
	require.NoError(t, err)
	require.Equal(t, Process{7, "a) b (c", "Z", 5, "42"}, p)
	for _, text := range []string{"", "7", "7 (x", ") (", "7 (x) S 5", "7 (x) S y 1 1 0 -1 1 1 0 0 0 0 0 0 0 20 0 1 0 42 1", "x (x) S 5 1 1 0 -1 1 1 0 0 0 0 0 0 0 20 0 1 0 42 1"} {
		_, err := parseStat(text)
		require.Error(t, err, text)
	}
}
