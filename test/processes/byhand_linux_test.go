package processes

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// If rank 0 of a job by hand cannot hold the job's port, the other ranks learn of it and do not wait for their timeout.
func TestPortIsTaken(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	start := func(rank int) <-chan string {
		c := exec.CommandContext(t.Context(), program(t))
		c.Env = append(clean(os.Environ()), failingVariable+"=none -1 -1", fmt.Sprint("RANK=", rank), "WORLD_SIZE=3",
			"MASTER_ADDR=127.0.0.1", fmt.Sprint("MASTER_PORT=", port))
		text := make(chan string, 1)
		go func() {
			out, _ := c.CombinedOutput() // it fails
			text <- string(out)
		}()
		return text
	}
	others := []<-chan string{start(1), start(2)}
	var texts []string
	for late := time.Now().Add(patience); len(texts) < 2 && time.Now().Before(late); {
		if own := <-start(0); !strings.Contains(own, fmt.Sprintf("rank 0 cannot hold MASTER_PORT=%d", port)) {
			t.Fatalf("rank 0: %s", own)
		}
		for _, other := range others { // a rank that has just started has missed it
			select {
			case text := <-other:
				texts = append(texts, text)
			default:
			}
		}
	}
	if len(texts) < 2 {
		t.Fatalf("ranks wait in vain; the others: %q", texts)
	}
	for _, text := range texts {
		if !strings.Contains(text, "aborted by rank 0: ") || !strings.Contains(text, fmt.Sprintf("rank 0 cannot hold MASTER_PORT=%d", port)) {
			t.Errorf("%s", text)
		}
	}
}
