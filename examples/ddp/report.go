package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/goccl/goccl/dist"
)

// report is the watcher that writes to the terminal: lines to out, and a
// progress bar to bars if that is a terminal.
type report struct {
	out, bars io.Writer
	job       job
	bar       *progressbar.ProgressBar
}

func newReport(out, bars io.Writer, j job) *report { return &report{out: out, bars: bars, job: j} }

// header describes the training before it starts, and how the gradients will be
// averaged.
func (r *report) header(trainSamples, testSamples int, way string) {
	params := parameters(r.job.layers)
	fmt.Fprintf(r.out, "model     %s perceptron: %d float32 parameters, %d KiB of gradients per step\n",
		shape(r.job.layers), params, 4*params/1024)
	fmt.Fprintf(r.out, "data      handwritten digits, 8x8 pixels: %d to train on, %d to test\n", trainSamples, testSamples)
	fmt.Fprintf(r.out, "schedule  %d epochs in steps of %d samples, SGD, rate %g, momentum %g, seed %d\n",
		r.job.epochs, r.job.batch, r.job.rate, r.job.momentum, r.job.seed)
	fmt.Fprintf(r.out, "gradients averaged by %s\n", way)
	fmt.Fprintf(r.out, "machine   %d usable cores, %s/%s\n", runtime.GOMAXPROCS(0), runtime.GOOS, runtime.GOARCH)
}

// connected opens the table of a run.
func (r *report) connected(group *dist.ProcessGroup) {
	fmt.Fprintf(r.out, "\n%s, %d samples per rank and step\n", plural(group.Size()), r.job.perRank(group.Size()))
	fmt.Fprintf(r.out, "%6s  %8s  %13s  %10s  %13s\n", "epoch", "loss", "test accuracy", "samples/s", "communication")
	if terminal(r.bars) {
		r.bar = progressbar.NewOptions(r.job.epochs,
			progressbar.OptionSetWriter(r.bars),
			progressbar.OptionSetDescription(plural(group.Size())),
			progressbar.OptionShowCount(),
			progressbar.OptionClearOnFinish())
	}
}

// trained adds a line to the table of a run.
func (r *report) trained(e epoch) {
	r.clearBar()
	fmt.Fprintf(r.out, "%6d  %8.4f  %13.4f  %10.0f  %12.1f%%\n",
		e.number, e.loss, e.accuracy, float64(e.samples)/e.elapsed.Seconds(), 100*e.communication())
	if r.bar != nil {
		_ = r.bar.Add(1)
	}
	if e.number == r.job.epochs {
		r.bar = nil // it has wiped itself
	}
}

// comparison compares the runs: a table, the curves of their losses and, at
// plotPath unless empty, a picture of them.
func (r *report) comparison(runs []run, plotPath string) error {
	fmt.Fprintf(r.out, "\n%6s  %8s  %8s  %13s  %13s\n", "ranks", "time", "speed-up", "test accuracy", "communication")
	var curves []curve
	base := total(runs[0].epochs).elapsed
	for _, run := range runs {
		t := total(run.epochs)
		fmt.Fprintf(r.out, "%6d  %6.2f s  %7.2fx  %13.4f  %12.1f%%\n", run.ranks, t.elapsed.Seconds(),
			base.Seconds()/t.elapsed.Seconds(), t.accuracy, 100*t.communication())
		curves = append(curves, newCurve(plural(run.ranks), run.losses[0], run.epochs))
	}
	fmt.Fprint(r.out, "time: all epochs, without the tests. communication: the share of it that rank 0\n"+
		"spent in collectives, waiting for slower ranks included.\n\n")

	fmt.Fprintln(r.out, sketch(curves, terminal(r.out)))
	if plotPath != "" {
		if err := savePlot(curves, plotPath); err != nil {
			return fmt.Errorf("picture of the loss: %w", err)
		}
		fmt.Fprintf(r.out, "picture: %s\n", plotPath)
	}
	return nil
}

// ending reports the result of a run. Its last line is the accuracy.
func (r *report) ending(last run) {
	fmt.Fprintf(r.out, "\ncommunication: %s\n", last.communication())
	fmt.Fprintf(r.out, "weights: equal bit by bit on all %s (sha256 %.16s...)\n", plural(last.ranks), last.digest)
	fmt.Fprintf(r.out, "test accuracy: %.4f\n", total(last.epochs).accuracy)
}

// clearBar erases the progress bar before a line is written.
func (r *report) clearBar() {
	if r.bar != nil {
		_ = r.bar.Clear() // errors of the progress bar do not matter
	}
}

// communication reports how much of the training time rank 0 spent in collectives, and for what. A
// rank that comes last to a collective waits for no other, so the shortest wait of all ranks is the
// time that copying and reducing took.
func (r run) communication() string {
	t := total(r.epochs)
	text := fmt.Sprintf("%.1f %% of the training time of rank 0 (%.3f s of %.2f s)",
		100*t.communication(), t.communicating.Seconds(), t.elapsed.Seconds())
	if r.ranks > 1 {
		work := r.working.Seconds() / t.elapsed.Seconds()
		text += fmt.Sprintf(":\n%.1f %% waiting for slower ranks, %.1f %% copying and reducing", 100*(t.communication()-work), 100*work)
	}
	return text
}

// communication is the share of the epoch that rank 0 waited for collectives.
func (e epoch) communication() float64 { return e.communicating.Seconds() / e.elapsed.Seconds() }

// total sums the epochs; it takes loss and accuracy from the last one.
func total(epochs []epoch) epoch {
	sum := epochs[len(epochs)-1]
	for _, e := range epochs[:len(epochs)-1] {
		sum.samples += e.samples
		sum.elapsed += e.elapsed
		sum.communicating += e.communicating
	}
	return sum
}

func plural(ranks int) string {
	if ranks == 1 {
		return "1 rank"
	}
	return fmt.Sprintf("%d ranks", ranks)
}

func shape(layers []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(layers), " ", "-"), "[]")
}

func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
