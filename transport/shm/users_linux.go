package shm

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// looksBetweenUsers is the number of looks for the segment between two for one of another user.
const looksBetweenUsers = 32

// checkUsers returns the error for a segment of this job's name that another user has made, or nil.
// Its ranks and this one never find each other. isCertain reports whether it is this job's.
//
// Anybody may make a file of the name, except that root is believed, and reads the secrets of all.
func (s *segment) checkUsers() (isCertain bool, err error) {
	paths, _ := filepath.Glob(filepath.Join(directory, "goccl-*-"+s.header.name)) // a name has no other pattern
	for _, path := range paths {
		var st unix.Stat_t
		if unix.Lstat(path, &st) != nil || int(st.Uid) == os.Geteuid() || filepath.Base(path) != fmt.Sprintf("goccl-%d-%s", st.Uid, s.header.name) {
			continue
		}

		err = fmt.Errorf("shared memory %s belongs to user %d, this process to user %d: start all ranks of a job as one user", path, st.Uid, os.Geteuid())
		if s.header.secret == [32]byte{} {
			return false, err // users may have jobs of one name
		}
		if st.Uid == 0 {
			return true, err
		}
		if fd, no := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0); no == nil {
			defer unix.Close(fd) //nolint:errcheck // nothing was written
			head := make([]byte, headBytes)
			n, _ := unix.Pread(fd, head, 0)
			if h, no := parseHeader(head[:max(n, 0)]); no == nil && h.secret == s.header.secret {
				if again, err := s.abandon(&found{path: path, fd: fd}, err); !again {
					return true, err
				}
			}
		}
	}
	return false, err
}
