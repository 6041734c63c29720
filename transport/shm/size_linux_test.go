package shm

import (
	"os"
	"testing"
)

// A job's segment has SegmentBytes bytes, and all of its memory is allocated.
func TestSegmentBytes(t *testing.T) {
	useOwnDirectory(t)
	const ranks = 1
	var made int64
	restore := stopAt(func(point string) {
		if point != "named" {
			return
		}
		if st, err := os.Stat(filePath("job")); err == nil {
			made = st.Size()
		}
	})
	defer restore()
	ep, err := Join(t.Context(), Job{Name: "job", Size: ranks})
	if err != nil {
		t.Fatal(err)
	}
	if err := ep.Close(); err != nil {
		t.Error(err)
	}
	if want := int64(SegmentBytes(ranks)); made != want {
		t.Errorf("the segment has %d bytes, SegmentBytes says %d", made, want)
	}
	if SegmentBytes(8) <= SegmentBytes(2) {
		t.Error("more ranks take more")
	}
}
