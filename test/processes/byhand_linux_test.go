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
	testRefusal(t, 0, "rank 0 cannot hold MASTER_PORT=", "aborted by rank 0: ")
}

// If a process of a job by hand counts the ranks from 1, they learn of it as well.
func TestRankThatIsNone(t *testing.T) {
	testRefusal(t, 3, "RANK=3 and WORLD_SIZE=3 contradict each other", "cannot join: ")
}

// testRefusal starts ranks 1 and 2 of a job by hand whose port is taken and, until they have failed, a process that cannot join them. Its
// error has the text why, and theirs have that and the text how.
func testRefusal(t *testing.T, refused int, why, how string) {
	t.Helper()
	t.Parallel()
	taken, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	start := func(rank int) <-chan string {
		c := exec.CommandContext(t.Context(), program(t))
		c.Env = append(clean(os.Environ()), failingVariable+"=none -1 -1", fmt.Sprint("RANK=", rank), "WORLD_SIZE=3",
			"MASTER_ADDR=127.0.0.1", fmt.Sprint("MASTER_PORT=", taken.Addr().(*net.TCPAddr).Port))
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
		if own := <-start(refused); !strings.Contains(own, why) {
			t.Fatalf("rank %d: %s", refused, own)
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
		if !strings.Contains(text, how) || !strings.Contains(text, why) {
			t.Errorf("%s", text)
		}
	}
}
