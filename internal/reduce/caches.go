package reduce

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// usualCache is assumed where the system does not tell the size of the last-level cache.
const usualCache = 32 << 20

// CacheBytes returns the size of the machine's largest cache; it may have several of them.
// Longer data does not stay in the caches until it is read.
var CacheBytes = sync.OnceValue(func() int {
	return cacheBytes("/sys/devices/system/cpu/cpu0/cache")
})

// cacheBytes reads the description of a core's caches in Linux' form.
func cacheBytes(dir string) int {
	largest := 0
	files, _ := filepath.Glob(filepath.Join(dir, "index*", "size"))

	for _, file := range files {
		text, _ := os.ReadFile(file)
		digits, kib := strings.CutSuffix(strings.TrimSpace(string(text)), "K")
		if size, err := strconv.Atoi(digits); err == nil && kib {
			largest = max(largest, size<<10)
		}
	}
	if largest == 0 {
		return usualCache
	}
	return largest
}
