package processes

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
)

// Shared memory exists once, whatever the number of ranks: each of four ranks sees all of a
// region of 20.8 MB, and together they take 20.8 MB, not 83.2.
func TestRegionIsThereOnce(t *testing.T) {
	const ranks, bytes = 4, 20_800_000
	j := start(t, ranks, part{Config: yamlFor(ranks), Rounds: 1, Region: bytes, Timeout: patience}, nil)
	together := 0
	for _, r := range j.ranks {
		got := r.sound()
		if got.Err != "" {
			t.Fatalf("rank %d: %s", r.number, got.Err)
		}
		if got.Resident < bytes*95/100 {
			t.Errorf("rank %d sees %d bytes of a region of %d", r.number, got.Resident, bytes)
		}
		together += got.Shared
	}
	t.Logf("%d ranks share %d bytes: together they take %d", ranks, bytes, together)
	if together < bytes*95/100 || together > bytes*105/100 {
		t.Errorf("a region of %d bytes takes %d", bytes, together)
	}
	j.leavesNothing()
}

// share makes a region, which all ranks populate and then read, and notes what memory
// that took while all have it.
func (r *result) share(bytes int) error {
	group, err := dist.Default()
	if err != nil {
		return err
	}
	ctx := context.Background()
	shared, resident := sharedMemory()
	region, err := ccl.CreateSharedRegion[uint8](ctx, group.Communicator(), bytes)
	if err != nil {
		return err
	}
	for i := range region.BlockSlice() {
		region.BlockSlice()[i] = 1
	}
	if err := region.Fence(ctx); err != nil {
		return err
	}
	sum := 0
	for _, v := range region.Slice() {
		sum += int(v)
	}
	if sum != bytes {
		r.Wrong = fmt.Sprintf("the region sums up to %d, want %d", sum, bytes)
	}
	if err := region.Fence(ctx); err != nil { // all have read it
		return err
	}
	nowShared, nowResident := sharedMemory()
	r.Shared, r.Resident = nowShared-shared, nowResident-resident
	if err := region.Fence(ctx); err != nil { // and noted it
		return err
	}
	return region.Close()
}

// sharedMemory returns this process's part of the shared memory that it has mapped, a
// page that several have counting in parts, and all that it sees of it.
func sharedMemory() (part, all int) {
	return 1024 * kilobytes("/proc/self/smaps_rollup", "Pss_Shmem:"), 1024 * kilobytes("/proc/self/status", "RssShmem:")
}

func kilobytes(file, name string) (n int) {
	text, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name); ok {
			if _, err := fmt.Sscan(value, &n); err != nil {
				panic(err)
			}
			return n
		}
	}
	panic(file + " has no " + name)
}
