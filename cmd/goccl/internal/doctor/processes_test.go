package doctor

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/transport/shm"
)

func TestDirectory(t *testing.T) {
	for _, c := range []struct {
		d       directory
		verdict Verdict
		says    string
	}{
		{directory{path: "/d", tmpfs: true, size: 1 << 30, free: 1 << 29}, OK, "tmpfs, 1.0 GiB, 512.0 MiB free; this user may write"},
		{directory{path: "/d", tmpfs: true}, OK, "tmpfs without limit; this user may write"},
		{directory{path: "/d", size: 1 << 30, free: 1 << 29}, Note, "no tmpfs, 1.0 GiB, 512.0 MiB free; this user may write"},
		{directory{path: "/d", tmpfs: true, size: 1 << 30}, Problem, "it is full: 0 B of 1.0 GiB are left"},
		{directory{path: "/d", tmpfs: true, size: 1 << 30, free: 1, noInode: true}, Problem, "it is full: no inode is left"},
		{directory{path: "/d", err: errors.New("no such directory")}, Problem, "no such directory"},
	} {
		f := c.d.finding()
		require.Equal(t, "/d", f.Name)
		require.Equal(t, c.verdict, f.Verdict)
		require.Equal(t, c.says, f.Says)
		require.Equal(t, c.verdict != OK, f.Do != "")
	}
}

// The needed size must fit; a larger job that does not fit is a note.
func TestRoom(t *testing.T) {
	two, needed, more := shm.SegmentBytes(2), shm.SegmentBytes(4), shm.SegmentBytes(8)
	for _, c := range []struct {
		d       directory
		verdict Verdict
		says    string
	}{
		{directory{size: 1 << 40, free: more}, OK, ": there is room"},
		{directory{}, OK, ": there is room"},
		{directory{size: 1 << 40, free: more - 1}, Note, ": there is room for 4"},
		{directory{size: 1 << 40, free: needed - 1}, Problem, ": there is room for 2"},
		{directory{size: 1 << 40, free: two - 1}, Problem, ": there is room for none"},
	} {
		f := c.d.room(4, []int{8, 2, 2})
		require.Equal(t, c.verdict, f.Verdict, f.Says)
		require.Equal(t, fmt.Sprintf("a job takes %s for 2 ranks, %s for 4 ranks, %s for 8 ranks%s",
			Amount(float64(two)), Amount(float64(needed)), Amount(float64(more)), c.says), f.Says)
		require.Equal(t, c.verdict != OK, f.Do != "")
	}
}

func TestLeftovers(t *testing.T) {
	require.Equal(t, OK, Leftovers(nil, nil).Verdict)
	f := Leftovers([]shm.Leftover{{Path: "/dev/shm/goccl-0-a", Bytes: 3 << 20, Made: time.Unix(0, 0)}, {Bytes: 1 << 20}}, nil)
	require.Equal(t, Note, f.Verdict)
	require.Contains(t, f.Says, "2 dead jobs have left 4.0 MiB behind, such as /dev/shm/goccl-0-a of ")
	require.Equal(t, "goccl doctor --clean", f.Do)
	require.Equal(t, "unknown: gone", Leftovers(nil, errors.New("gone")).Says)
}
