//go:build unix

package userfile

import (
	"io/fs"
	"os"
	"syscall"
)

// open opens a file that was regular a moment ago: it follows no link and waits for no writer.
func open(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
}

// ownerOf returns the user to whom a file belongs.
func ownerOf(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}
