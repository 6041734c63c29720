package shm

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
)

func TestStartOf(t *testing.T) {
	allowed, ok := startOf(os.Getpid())
	if !ok || allowed == 0 {
		t.Fatalf("this process started at %d, %v", allowed, ok)
	}
	if again, err := ownStart(); err != nil || again != allowed {
		t.Errorf("by another way it started at %d, %v", again, ok)
	}
	parent, ok := startOf(os.Getppid())
	if !ok || parent > allowed {
		t.Errorf("the parent started at %d (%v), this process at %d", parent, ok, allowed)
	}
	// A zombie does not count as running.
	child := exec.Command("/bin/true")
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = out.Read(make([]byte, 1)) // returns when the process has ended
	for limit := time.Now().Add(10 * time.Second); ; runtime.Gosched() {
		if _, ok := startOf(child.Process.Pid); !ok {
			break
		}
		if time.Now().After(limit) {
			t.Fatal("a process that is dead has a start")
		}
	}
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, ok := startOf(child.Process.Pid); ok {
		t.Error("a process that was collected has a start")
	}
}
