package reduce

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCacheBytes(t *testing.T) {
	for _, c := range []struct {
		sizes []string
		want  int
	}{
		{[]string{"48K", "32K", "1024K", "32768K"}, 32 << 20},
		{[]string{"32K", "512K"}, 512 << 10},
		{[]string{"", "all of it", "9"}, usualCache},
		{nil, usualCache},
	} {
		dir := t.TempDir()
		for i, size := range c.sizes {
			index := filepath.Join(dir, "index"+string(rune('0'+i)))
			require.NoError(t, os.Mkdir(index, 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(index, "size"), []byte(size+"\n"), 0o644))
		}
		require.Equal(t, c.want, cacheBytes(dir), "%v", c.sizes)
	}
	require.Positive(t, CacheBytes())
}
