package tool

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport/tcp"
)

// write prints the report as text: the settings, the table of calls, the result of every
// rule (if why is set or the report has one call only), and the findings.
func (r *explanation) write(stdout io.Writer, why bool) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "configuration: %s (%s)\n\n", r.Config.File, r.Config.FoundBy)
	writeTable(&b, append([][]string{{"KEY", "VALUE", "ORIGIN"}}, r.values()...))

	b.WriteString("\n")
	calls := r.writeCalls(&b)
	if why || len(calls) == 1 {
		for _, c := range calls {
			c.writeWhy(&b)
		}
	}

	if len(r.Findings) == 0 {
		b.WriteString("\nfindings: none\n")
	} else {
		b.WriteString("\nfindings:\n")
	}
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "  %s: %s\n", f.Origin, f.Message)
	}
	_, err := stdout.Write(b.Bytes())
	return err
}

// writeTable aligns the cells of rows.
func writeTable(b *bytes.Buffer, rows [][]string) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	_ = t.Flush() // writing to memory does not fail
}

// values returns key, value and origin of all settings. If a setting differs between world
// sizes, its cells list the values and origins.
func (r *explanation) values() (rows [][]string) {
	possible := slices.DeleteFunc(slices.Clone(r.Worlds), func(w *world) bool { return w.Refused != "" })
	for i, v := range possible[0].Values {
		var values, origins []string
		for _, w := range possible {
			values = appendNew(values, w.Values[i].Value)
			origins = appendNew(origins, w.Values[i].Origin)
		}
		rows = append(rows, []string{v.Key, strings.Join(values, ", "), strings.Join(origins, ", ")})
	}
	return rows
}

// appendNew appends text to texts if they do not contain it.
func appendNew(texts []string, text string) []string {
	if slices.Contains(texts, text) {
		return texts
	}
	return append(texts, text)
}

// callColumns are the column heads of the table of calls. A column of inCaption whose value is
// the same in all rows moves to the caption.
var (
	callColumns = []string{"TRANSPORT", "RANKS", "NODES", "COLLECTIVE", "DTYPE", "OP", "BYTES", "ENTRY", "MODULE", "PARAMS", "STEPS", "MOVED", "CHOSEN BY"}
	inCaption   = []string{"TRANSPORT", "RANKS", "NODES", "DTYPE", "OP"}
)

// writeCalls prints a row for each call and for each world size that the configuration rejects,
// and returns the calls. It omits empty columns.
func (r *explanation) writeCalls(b *bytes.Buffer) (calls []*call) {
	rows := [][]string{callColumns}
	eager, costsOfPackets := false, false
	several := slices.ContainsFunc(r.Worlds, func(w *world) bool { return w.Nodes > 1 })
	for _, w := range r.Worlds {
		if w.Refused != "" {
			row := slices.Repeat([]string{"-"}, len(callColumns))
			row[1], row[2], row[3], row[len(row)-1] = strconv.Itoa(w.Ranks), strconv.Itoa(w.Nodes), "all", "refused: "+w.Refused
			rows = append(rows, row)
		}

		for _, c := range w.Calls {
			calls = append(calls, c)
			rows = append(rows, c.row())
			eager = eager || c.Eager
			costsOfPackets = costsOfPackets || c.Transport == tcp.Name || c.Transport == "mpi"
		}
	}

	for _, row := range rows[1:] {
		if !several {
			row[2] = "-"
		}
	}

	caption, rows := withoutConstants(rows, inCaption)
	fmt.Fprintf(b, "calls: %s\n\n", caption)
	writeTable(b, rows)
	b.WriteString("\nBYTES: of one rank's input. STEPS: messages on the longest chain in which each waits for the one before;\n" +
		"a view counts as one. MOVED: bytes that all ranks together send, or read and store through a view.\n")
	if eager {
		b.WriteString("eager: the inputs travel with the synchronisation that starts every call.\n")
	}
	if costsOfPackets {
		b.WriteString("Between nodes, STEPS and MOVED count short inputs too, although some travel with the synchronisation.\n")
	}
	return calls
}

// withoutConstants omits empty columns of a table, whose first row are the heads, moves columns of
// inCaption with a single value to the caption, and returns the caption and the remaining rows.
func withoutConstants(all [][]string, inCaption []string) (caption string, rows [][]string) {
	rows = make([][]string, len(all))
	var same []string
	for i, head := range all[0] {
		var different []string
		for _, row := range all[1:] {
			if row[i] != "-" {
				different = appendNew(different, row[i])
			}
		}

		switch {
		case len(different) == 0:
		case slices.Contains(inCaption, head) && len(different) == 1:
			same = append(same, strings.ToLower(head)+" "+different[0])
		default:
			for j, row := range all {
				rows[j] = append(rows[j], row[i])
			}
		}
	}
	return strings.Join(same, ", "), rows
}

func (c *call) row() []string {
	row := []string{
		c.Transport, strconv.Itoa(c.Ranks), strconv.Itoa(c.Nodes), c.Collective.String(), c.DType.String(), orDash(c.Op),
		ccl.ByteSize(c.Bytes).String(), orDash(c.Entry), orDash(c.Module), orDash(c.paramsText()), "-", "-", c.ChosenBy,
	}

	n := len(row)
	switch {
	case c.Refused != "":
		row[n-1] = "refused: " + withoutShape(c.Collective.String(), c.Refused)
	case c.Note != "":
		row[n-1] = c.Note
	default:
		row[n-3], row[n-2] = strconv.Itoa(c.Cost.Steps), ccl.ByteSize(c.Cost.Bytes).String()
	}

	if c.Eager {
		row[n-3] += " (eager)"
	}
	return row
}

func orDash(s string) string { return cmp.Or(s, "-") }

func (c *call) paramsText() string {
	var params []string
	for _, key := range slices.Sorted(maps.Keys(c.Params)) {
		params = append(params, key+"="+c.Params[key])
	}
	return strings.Join(params, " ")
}

// withoutShape strips "ccl: all_reduce (...): " or "ccl: all_reduce: " from the error of a
// collective: its row has that information.
func withoutShape(collective, message string) string {
	rest, ok := strings.CutPrefix(message, "ccl: "+collective)
	if strings.HasPrefix(rest, " (") {
		_, rest, _ = strings.Cut(rest, ")")
	}
	if reason, found := strings.CutPrefix(rest, ": "); ok && found {
		return reason
	}
	return message
}

// onNodes returns " on 2 nodes", "" if the call is on one.
func (c *call) onNodes() string {
	if c.Nodes == 1 {
		return ""
	}
	return fmt.Sprintf(" on %d nodes", c.Nodes)
}

// writeWhy prints the call, its kernel, and for each rule why it matched or did not.
func (c *call) writeWhy(b *bytes.Buffer) {
	kind := c.DType.String()
	if c.Op != "" {
		kind += ", " + c.Op
	}

	fmt.Fprintf(b, "\n%v of %v (%s) on %d ranks%s over %s: ", c.Collective, ccl.ByteSize(c.Bytes), kind, c.Ranks, c.onNodes(), c.Transport)
	switch {
	case c.Refused != "":
		b.WriteString("refused\n")
	case c.Note != "":
		fmt.Fprintf(b, "%s\n", c.Note)
	default:
		fmt.Fprintf(b, "%s\n  %s: %s\n", c.Entry, c.Module, c.Kernel)
	}

	var rows [][]string
	for _, v := range c.Rules {
		rows = append(rows, []string{fmt.Sprintf("  rule %d", v.Rule), v.Origin, v.Entry, v.Why})
	}
	writeTable(b, rows)
}
