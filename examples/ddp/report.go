package main

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
)

// run is a finished training. It is the same on every rank, except for times.
type run struct {
	ranks    int
	from     int // epochs that an earlier run has trained
	epochs   []epoch
	total    epoch  // the last one, with the times of all
	checksum string // of the weights, proven equal on all ranks
}

// epoch is the result of one pass over the training set.
type epoch struct {
	number, samples int             // from 1; trained on by all ranks together
	losses          []float64       // of the steps, in nats
	loss            float64         // their mean
	accuracy        float64         // share of the test set classified correctly after the epoch
	elapsed         time.Duration   // in steps
	communicating   time.Duration   // the part of it that this rank waited for gradients, slower ranks included
	waits           []time.Duration // the shortest of any rank in each step: the last rank waits for no other
	working         time.Duration   // their sum
}

// communication is the share of the time that this rank waited for gradients.
func (e epoch) communication() float64 { return e.communicating.Seconds() / e.elapsed.Seconds() }

func (r *run) add(e epoch) {
	r.epochs = append(r.epochs, e)
	e.elapsed += r.total.elapsed
	e.communicating += r.total.communicating
	e.working += r.total.working
	r.total = e
}

// report writes what rank 0 has to say.
type report struct {
	out io.Writer
	options
}

// header describes the training before it starts, and which algorithm will average gradients, and
// why.
func (r report) header(group *dist.ProcessGroup, trainSamples, testSamples int) error {
	parameters, largest := 0, 0
	for _, l := range newMLP[float32](r.layers, 0) {
		parameters, largest = parameters+len(l.params), max(largest, len(l.params))
	}

	comm, entry := group.Communicator(), ""
	if r.shards > 0 {
		entry = "pairwise" // logical shards need it
	}
	choice, err := comm.Selector().Choose(ccl.Shape{
		Collective: ccl.CollAllReduce, Ranks: comm.Size(), Nodes: comm.Nodes(), Bytes: 4 * largest, Total: 4 * largest,
		DType: ccl.Float32, Op: ccl.Avg, Topology: comm.Selector().Topology(), Native: comm.Transport() == "mpi",
	}, entry)
	fmt.Fprintf(r.out, "model     %s perceptron: %d float32 parameters, %d KiB of gradients per step\n",
		strings.Trim(strings.ReplaceAll(fmt.Sprint(r.layers), " ", "-"), "[]"), parameters, 4*parameters/1024)
	fmt.Fprintf(r.out, "data      handwritten digits, 8x8 pixels: %d to train on, %d to test\n", trainSamples, testSamples)
	fmt.Fprintf(r.out, "schedule  %d epochs in steps of %d samples, SGD, rate %g, momentum %g, seed %d\n",
		r.epochs, r.batch, r.rate, r.momentum, r.seed)
	fmt.Fprintf(r.out, "gradients averaged by %s over %s (%s)\n", choice.Entry, comm.Transport(), choice.Why)
	fmt.Fprintf(r.out, "machine   %d usable cores, %s/%s\n", runtime.GOMAXPROCS(0), runtime.GOOS, runtime.GOARCH)
	return err
}

// table opens the table of a run, to which epoch adds a line. from is the checkpoint from which it
// goes on, or "".
func (r report) table(ranks, shards, batch int, from string) {
	each := "rank"
	if shards != ranks {
		each = "shard"
	}
	if from != "" {
		from = ", from " + from
	}
	fmt.Fprintf(r.out, "\n%s, %d samples per %s and step%s\n", plural(ranks), batch, each, from)
	fmt.Fprintf(r.out, "%6s  %8s  %13s  %10s  %13s\n", "epoch", "loss", "test accuracy", "samples/s", "communication")
}

func (r report) epoch(e epoch) {
	fmt.Fprintf(r.out, "%6d  %8.4f  %13.4f  %10.0f  %12.1f%%\n",
		e.number, e.loss, e.accuracy, float64(e.samples)/e.elapsed.Seconds(), 100*e.communication())
}

// busyCores is how many cores others may use without an effect on the speed-up that a reader would
// see.
const busyCores = 0.15

// comparison compares runs: a table, the curves of their losses and, if -plot says so, a picture
// of them. others is how many of the cores other programs used meanwhile: where these had to share
// cores, times tell nothing about a speed-up.
func (r report) comparison(runs []*run, others float64) error {
	fmt.Fprintf(r.out, "\n%6s  %8s  %8s  %13s  %13s\n", "ranks", "time", "speed-up", "test accuracy", "communication")
	for _, run := range runs {
		seconds := run.total.elapsed.Seconds()
		speedup := fmt.Sprintf("%.2fx", runs[0].total.elapsed.Seconds()/seconds)
		if others > busyCores {
			speedup = "-"
		}
		fmt.Fprintf(r.out, "%6d  %6.2f s  %8s  %13.4f  %12.1f%%\n", run.ranks, seconds, speedup, run.total.accuracy, 100*run.total.communication())
	}

	fmt.Fprint(r.out, "time: all epochs, without the tests. communication: the share of it that rank 0\n"+
		"spent in collectives, waiting for slower ranks included.\n")
	if others > busyCores {
		fmt.Fprintf(r.out, "This machine was busy: other programs used %.1f of its %d cores, so the times are not\n"+
			"compared. Try again when it is idle.\n", others, runtime.GOMAXPROCS(0))
	}

	fmt.Fprintln(r.out)
	fmt.Fprintln(r.out, sketch(runs, terminal(r.out)))
	if r.plot != "" {
		if err := savePlot(runs, r.plot); err != nil {
			return fmt.Errorf("picture of the loss: %w", err)
		}
		fmt.Fprintf(r.out, "picture: %s\n", r.plot)
	}
	return nil
}

// result ends the report.
func (r report) result(runs []*run) {
	last := runs[len(runs)-1]
	t := last.total
	if len(last.epochs) > 0 {
		r.communication(last)
	}
	also := ""
	if len(runs) > 1 && runs[0].checksum == last.checksum {
		also = fmt.Sprintf(", and on %s", plural(runs[0].ranks))
	}
	fmt.Fprintf(r.out, "\nweights: equal bit by bit on all %s%s (sha256 %.16s...)\n", plural(last.ranks), also, last.checksum)
	fmt.Fprintf(r.out, "test accuracy: %.4f\n", t.accuracy)
}

// communication says what the times of a run were spent on.
func (r report) communication(last *run) {
	t := last.total
	fmt.Fprintf(r.out, "\ncommunication: %.1f %% of the training time of rank 0 (%.3f s of %.2f s)",
		100*t.communication(), t.communicating.Seconds(), t.elapsed.Seconds())
	if last.ranks > 1 {
		work := t.working.Seconds() / t.elapsed.Seconds()
		fmt.Fprintf(r.out, ":\n%.1f %% waiting for slower ranks, %.1f %% copying and reducing", 100*(t.communication()-work), 100*work)
	}
}

func plural(ranks int) string {
	if ranks == 1 {
		return "1 rank"
	}
	return fmt.Sprintf("%d ranks", ranks)
}
