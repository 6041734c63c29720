//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// ownGroup makes the child the leader of a process group.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// askToEnd is what a launcher gets to stop its ranks and to remove its files.
func askToEnd(leader *os.Process) error {
	if err := syscall.Kill(-leader.Pid, syscall.SIGTERM); err != nil {
		return os.ErrProcessDone
	}
	return nil
}

// killAll kills what is left of the child's process group, and every process that
// has the mark in its environment, where the system shows that (in /proc). It waits
// a little until they are gone.
func killAll(leader *os.Process, mark string) {
	_ = syscall.Kill(-leader.Pid, syscall.SIGKILL) // there may be none, which is fine
	for range 100 {
		found := false
		environments, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, file := range environments {
			environment, err := os.ReadFile(file)
			if err != nil || !bytes.Contains(environment, []byte(mark+"\x00")) {
				continue // it has ended, or is somebody else's
			}
			found = true
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by now
			}
		}
		if !found {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
