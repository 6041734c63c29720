package shm

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goccl/goccl/transport"
	"golang.org/x/sys/unix"
)

// Rank 0 and the other ranks immediately reject any other file with the segment's name, and do not
// change it. Each kind of file has its own message.
func TestForeignFiles(t *testing.T) {
	const size = 5000
	good := header{name: "job", ranks: 2, arena: size, page: os.Getpagesize()}
	le := binary.LittleEndian
	write := func(change func(b []byte) []byte) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			b := change(append(good.encode(), make([]byte, good.total()-headBytes)...))
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	same := func(b []byte) []byte { return b }
	for name, c := range map[string]struct {
		put  func(t *testing.T, path string)
		want string
	}{
		"symlink": {func(t *testing.T, path string) {
			write(same)(t, path+".target")
			t.Cleanup(func() { os.Remove(path + ".target") })
			if err := os.Symlink(path+".target", path); err != nil {
				t.Fatal(err)
			}
		}, "is a symbolic link, not a regular file"},
		"dangling symlink": {func(t *testing.T, path string) {
			if err := os.Symlink("nowhere", path); err != nil {
				t.Fatal(err)
			}
		}, "is a symbolic link, not a regular file"},
		"directory": {func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "is a directory, not a regular file"},
		"pipe": {func(t *testing.T, path string) {
			if err := unix.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "is a named pipe, not a regular file"},
		"socket": {func(t *testing.T, path string) {
			if err := unix.Mknod(path, unix.S_IFSOCK|0o600, 0); err != nil {
				t.Fatal(err)
			}
		}, "is a socket, not a regular file"},
		"mode": {func(t *testing.T, path string) {
			write(same)(t, path)
			if err := os.Chmod(path, 0o660); err != nil {
				t.Fatal(err)
			}
		}, "has mode 0660, want 0600"},
		"read-only": {func(t *testing.T, path string) {
			write(same)(t, path)
			if err := os.Chmod(path, 0o400); err != nil {
				t.Fatal(err)
			}
		}, "has mode 0400, want 0600"},
		"set-user-id": {func(t *testing.T, path string) {
			write(same)(t, path)
			if err := os.Chmod(path, 0o600|os.ModeSetuid); err != nil {
				t.Fatal(err)
			}
		}, "has mode 4600, want 0600"},
		"empty":      {write(func(b []byte) []byte { return nil }), "it has 0 bytes, fewer than"},
		"truncated":  {write(func(b []byte) []byte { return b[:len(b)-1] }), fmt.Sprintf("it has %d bytes, its header says %d", good.total()-1, good.total())},
		"longer":     {write(func(b []byte) []byte { return append(b, 0) }), fmt.Sprintf("it has %d bytes, its header says %d", good.total()+1, good.total())},
		"text":       {write(func(b []byte) []byte { return bytes.Repeat([]byte("some text "), 1000) }), `it begins with "some tex"`},
		"zeros":      {write(func(b []byte) []byte { clear(b); return b }), `it begins with "\x00\x00`},
		"byte order": {write(func(b []byte) []byte { b[8], b[9], b[10], b[11] = b[11], b[10], b[9], b[8]; return b }), "its byte order is"},
		"version":    {write(func(b []byte) []byte { le.PutUint32(b[12:], headerVersion+1); return b }), fmt.Sprintf("its layout has version %d", headerVersion+1)},
		"other job":  {write(func(b []byte) []byte { b[42] = 'J'; return b }), `it belongs to job "Job", not to "job"`},
		"bytes at random": {write(func(b []byte) []byte {
			for i := range b[16:headBytes] {
				b[16+i] = byte(i*i*37 + 11*i)
			}
			return b
		}), "its header is corrupt"},
	} {
		t.Run(name, func(t *testing.T) {
			useOwnDirectory(t)
			path := filePath("job")
			c.put(t, path)
			t.Cleanup(func() { os.Remove(path) })
			before, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			open := openFiles()
			for rank := range 2 {
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
				defer cancel()
				s, err := openSegment(ctx, Job{Name: "/job", Rank: rank, Size: 2}, size)
				if err == nil {
					s.close()
					t.Fatalf("rank %d has opened it", rank)
				}
				if ctx.Err() != nil || !strings.Contains(err.Error(), path) {
					t.Errorf("rank %d: %v", rank, err)
				}
				// Rank 0 does not compare the file, because it needs the name for its own.
				if !strings.Contains(err.Error(), c.want) && !(rank == 0 && name == "other job" && strings.Contains(err.Error(), `belongs to job "Job" by its header`)) {
					t.Errorf("rank %d: %v, want %q", rank, err, c.want)
				}
			}
			if all, err := Leftovers(); err != nil || len(all) > 0 {
				t.Errorf("Leftovers: %+v, %v", all, err)
			}
			if more := openFiles() - open; more != 0 {
				t.Errorf("%d files are open that were not before", more)
			}
			if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) || before.Size() != after.Size() || before.Mode() != after.Mode() || before.ModTime() != after.ModTime() {
				t.Errorf("%v was changed to %v, %v", before, after, err)
			}
		})
	}
}

// A leftover of this user is no obstacle, whatever its size.
func TestDeadFileIsReplaced(t *testing.T) {
	for name, h := range map[string]header{
		"alike":        {name: "job", ranks: 1, arena: 5000, page: os.Getpagesize()},
		"other ranks":  {name: "job", ranks: 3, arena: 5000, page: os.Getpagesize()},
		"other arena":  {name: "job", ranks: 1, arena: 7000, page: os.Getpagesize()},
		"other secret": {name: "job", ranks: 1, arena: 5000, page: os.Getpagesize(), secret: [32]byte{1}},
	} {
		t.Run(name, func(t *testing.T) {
			useOwnDirectory(t)
			if err := os.WriteFile(filePath("job"), append(h.encode(), make([]byte, h.total()-headBytes)...), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := openSegment(t.Context(), Job{Name: "/job", Size: 1}, 5000)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// All ranks skip files of other users, whether they may open them or not, also if only some ranks
// see the files.
func TestFilesOfAnotherUser(t *testing.T) {
	useOwnDirectory(t)
	const nobody = 65534
	change := as(t, nobody)
	path := filepath.Join(directory, fmt.Sprintf("goccl-%d-job", nobody))
	err := errors.Join(
		os.WriteFile(path, []byte("secret"), 0o600),
		os.Symlink("nowhere", path+"~1"),
		os.Mkdir(path+"~2", 0o700),
		unix.Mkfifo(path+"~3", 0o666),
	)
	if err != nil {
		t.Fatal(err)
	}
	job := Job{Name: "job", Size: 3}
	early := startRank(t, rankSpec{Job: Job{Name: "job", Rank: 2, Size: 3}}, change)
	rank0 := startRank(t, rankSpec{Job: job, Stop: "named"}, change)
	rank0.await("at named")
	if _, err := os.Lstat(path + "~4"); err != nil {
		t.Error(err)
	}
	if err := os.Remove(path); err != nil { // the ranks that come now find the name free
		t.Fatal(err)
	}
	job.Rank = 1
	rank1 := startRank(t, rankSpec{Job: job}, change)
	rank0.goOn()
	for _, r := range []*rank{rank0, rank1, early} {
		r.joined()
	}
	if leftBehind := files(t); len(leftBehind) != 3 {
		t.Errorf("%q are there, want the other user's three", leftBehind)
	}
	for k := 1; k < 4; k++ {
		if err := os.Remove(numbered(path, k)); err != nil {
			t.Error(err)
		}
	}
}

// If another user has all names, all ranks return that error immediately.
func TestAllNamesAreAnotherUsers(t *testing.T) {
	useOwnDirectory(t)
	const nobody = 65534
	change := as(t, nobody)
	path := filepath.Join(directory, fmt.Sprintf("goccl-%d-job", nobody))
	for k := range maxNames {
		if err := os.WriteFile(numbered(path, k), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2 {
		got := startRank(t, rankSpec{Job: Job{Name: "job", Rank: i, Size: 2}}, change).result()
		if want := fmt.Sprintf("job~15 belongs to user 0, this process to user %d", nobody); !strings.Contains(got.Err, want) || got.Elapsed > atOnce {
			t.Errorf("rank %d: %q after %v, want %q", i, got.Err, got.Elapsed, want)
		}
	}
	for k := range maxNames {
		if err := os.Remove(numbered(path, k)); err != nil {
			t.Error(err)
		}
	}
}

// Ranks of one job that belong to different users never find each other, and say so at once. A file of
// another user that does not have the job's secret is skipped.
func TestRanksOfDifferentUsers(t *testing.T) {
	const nobody = 65534
	change := as(t, nobody)
	job := func(rank int, secret string) Job { return Job{Name: "job", Rank: rank, Size: 2, Secret: secret} }
	says := func(owner, user int) string {
		return fmt.Sprintf("goccl-%d-job belongs to user %d, this process to user %d: start all ranks of a job as one user", owner, owner, user)
	}
	t.Run("root first", func(t *testing.T) {
		useOwnDirectory(t)
		rank0 := startRank(t, rankSpec{Job: job(0, "hush")})
		rank0.await("at named")
		if got := startRank(t, rankSpec{Job: job(1, "hush")}, change).result(); !strings.Contains(got.Err, says(0, nobody)) {
			t.Errorf("%+v", got)
		}
		rank0.kill()
		removeLeftovers(t, 1)
	})
	t.Run("root second", func(t *testing.T) {
		useOwnDirectory(t)
		rank0 := startRank(t, rankSpec{Job: job(0, "hush")}, change)
		rank0.await("at named")
		rank1 := startRank(t, rankSpec{Job: job(1, "hush")})
		for _, r := range []*rank{rank0, rank1} {
			if got := r.result(); !strings.Contains(got.Err, says(nobody, 0)) || r == rank0 && (got.AbortedBy == nil || *got.AbortedBy != 1) {
				t.Errorf("%+v", got)
			}
		}
	})
	t.Run("jobs of one name", func(t *testing.T) {
		for _, secret := range []string{"", "of another job"} {
			useOwnDirectory(t)
			other := startRank(t, rankSpec{Job: job(0, secret)}, change)
			other.await("at named")
			late := startRank(t, rankSpec{Job: job(1, "hush"), Timeout: 500 * time.Millisecond}).result()
			if late.Late == nil || !strings.Contains(late.Err, says(nobody, 0)) {
				t.Errorf("%+v", late)
			}
			rank1 := startRank(t, rankSpec{Job: job(1, "hush")})
			startRank(t, rankSpec{Job: job(0, "hush")}).joined()
			rank1.joined()
			startRank(t, rankSpec{Job: job(1, secret)}, change).joined()
			other.joined()
		}
	})
}

// as runs a rank as another user.
func as(t *testing.T, uid uint32) func(*exec.Cmd) {
	t.Helper()
	change := func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	probe := exec.Command("/proc/self/exe", "-test.run=^$")
	change(probe)
	if err := probe.Run(); err != nil {
		t.Skipf("this user cannot start processes of another one: %v", err)
	}
	return change
}

// The file has mode 0600 under any umask.
func TestUmask(t *testing.T) {
	useOwnDirectory(t)
	defer unix.Umask(unix.Umask(0o777))
	var st unix.Stat_t
	defer stopAt(func(point string) {
		if err := unix.Lstat(filePath("job"), &st); point == "named" && err != nil {
			t.Error(err)
		}
	})()
	s, err := openSegment(context.Background(), Job{Name: "job", Size: 1}, 100)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
	if st.Mode != unix.S_IFREG|0o600 {
		t.Errorf("mode %o", st.Mode)
	}
}

// stopAt replaces atPoint until the returned function is called.
func stopAt(f func(point string)) (restore func()) {
	old := atPoint
	atPoint = f
	return func() { atPoint = old }
}

// If the directory cannot provide the memory, all ranks return the same error, with the bytes
// needed, the bytes free, and the remedy.
func TestDirectoryWithoutRoom(t *testing.T) {
	if !inMountNamespace(t) {
		return
	}
	const size = 1 << 20
	need := size + os.Getpagesize()
	needed := fmt.Sprintf("%d bytes are needed", need)
	for _, c := range []struct {
		name, options string
		flags         uintptr
		prepare       func(t *testing.T)
		want          string
	}{
		{"64 KiB", "size=64k", 0, nil, "no space left on device: " + needed + ", 65536 of 65536 bytes free"},
		{"read-only", "size=16m", unix.MS_RDONLY, nil, "read-only file system: " + needed},
		{"no inodes", "size=16m,nr_inodes=1", 0, nil, "no space left on device: " + needed + ", 16777216 of 16777216 bytes, but no inode, free"},
		{"full", "size=16m", 0, func(t *testing.T) {
			if err := os.WriteFile("/dev/shm/other", make([]byte, 16<<20-size), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "no space left on device: " + needed + ", 1048576 of 16777216 bytes free"},
		{"absent", "size=16m", 0, func(t *testing.T) { directory = "/dev/shm/gone" }, "/dev/shm/gone: no such file or directory: " + needed + ", nothing free"},
		{"a file", "size=16m", 0, func(t *testing.T) {
			directory = "/dev/shm/file"
			if err := os.WriteFile(directory, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "not a directory: " + needed},
	} {
		t.Run(c.name, func(t *testing.T) {
			mountShm(t, c.options, c.flags)
			defer func(old string) { directory = old }(directory)
			if c.prepare != nil {
				c.prepare(t)
			}
			for rank := range 2 {
				ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
				defer cancel()
				_, err := openSegment(ctx, Job{Name: "job", Rank: rank, Size: 2}, size)
				var failed *transport.AllocationFailedError
				if !errors.As(err, &failed) || failed.RequestedBytes != need {
					t.Fatalf("rank %d: %v, want an *AllocationFailedError", rank, err)
				}
				for _, want := range []string{c.want, "--shm-size"} {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("rank %d: %v, want %q", rank, err, want)
					}
				}
				// The file exists only if rank 0 could make it: where there is room in
				// principle the others cannot know better.
				if rank == 1 && ctx.Err() != nil && c.name != "full" && c.name != "no inodes" {
					t.Errorf("rank 1 has waited in vain: %v", err)
				}
			}
		})
	}
	t.Run("16 MiB", func(t *testing.T) {
		mountShm(t, "size=16m", 0)
		for _, r := range startShmJob(t, 8, 15<<20) {
			r.joined()
		}
		for _, r := range startShmJob(t, 2, 16<<20) {
			if got := r.result(); got.Requested != 16<<20+os.Getpagesize() {
				t.Errorf("16 MiB: %+v", got)
			}
		}
		var fs unix.Statfs_t
		if err := unix.Statfs("/dev/shm", &fs); err != nil || (fs.Blocks-fs.Bavail)*uint64(fs.Bsize) > 15<<20+uint64(os.Getpagesize()) {
			t.Errorf("%d blocks are used, %v", fs.Blocks-fs.Bavail, err)
		}
	})
	t.Run("not writable", func(t *testing.T) {
		mountShm(t, "size=16m,mode=755", 0)
		for i := range 2 {
			spec := rankSpec{Job: Job{Name: "job", Rank: i, Size: 2}}
			if got := startRank(t, spec, as(t, 65534)).result(); got.Requested == 0 || !strings.Contains(got.Err, "/dev/shm: permission denied: ") {
				t.Errorf("rank %d: %+v", i, got)
			}
		}
	})
}

func startShmJob(t *testing.T, size, bytes int) []*rank {
	t.Helper()
	ranks := make([]*rank, size)
	for i := range ranks {
		ranks[i] = startRank(t, rankSpec{Job: Job{Name: "job", Rank: i, Size: size}, Bytes: bytes})
	}
	return ranks
}

// mountShm mounts a tmpfs on /dev/shm of this mount namespace. The test must leave nothing there.
func mountShm(t *testing.T, options string, flags uintptr) {
	t.Helper()
	if err := unix.Mount("tmpfs", "/dev/shm", "tmpfs", flags, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if leftBehind, err := filepath.Glob("/dev/shm/goccl-*"); err != nil || len(leftBehind) > 0 {
			t.Errorf("left behind: %q, %v", leftBehind, err)
		}
		if err := unix.Unmount("/dev/shm", unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

const namespaceVariable = "TEST_GOCCL_SEGMENT_MOUNTS"

// inMountNamespace runs the test once more in a process with its own mount namespace. In that process
// it returns true.
func inMountNamespace(t *testing.T) bool {
	t.Helper()
	if os.Getenv(namespaceVariable) == "1" {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			t.Fatal(err)
		}
		return true
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v", "-test.count=1")
	cmd.Env = append(os.Environ(), namespaceVariable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Skipf("this user may not have a mount namespace: %v", err)
	}
	err := cmd.Wait()
	t.Logf("in a mount namespace:\n%s", &out)
	if err != nil || !strings.Contains(out.String(), "--- PASS: "+t.Name()) {
		t.Errorf("in a mount namespace: %v", err)
	}
	return false
}
