package tool

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The page has every command, argument and flag that is not hidden, and no text becomes markup.
func TestManPage(t *testing.T) {
	page := printed(t, "man")
	leaves := newParser().Model.Leaves(true)
	require.NotEmpty(t, leaves)
	for _, n := range leaves {
		_, section, found := strings.Cut(page, "\n.SS goccl "+roff(n.Path())+"\n")
		require.True(t, found, n.Path())
		section, _, _ = strings.Cut(section, "\n.S")
		require.Contains(t, section, roff(n.Help))
		for _, f := range n.Flags {
			require.Equal(t, !f.Hidden, strings.Contains(section, roff("--"+f.Name)), f.Name)
		}
		for _, arg := range n.Positional {
			require.Contains(t, section, ".I "+roff(arg.Name)+"\n")
		}
	}
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, ".") {
			require.Regexp(t, `^\.(TH|SH|SS|TP|PP|B|I|br)\b`, line)
		}
		require.NotEqual(t, "\n", line)
	}
	require.Equal(t, `\&.a\-b\ec d`, roff(".a-b\\c\nd"))

	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("groff is not installed: the page is not formatted")
	}
	c := exec.CommandContext(t.Context(), groff, "-man", "-ww", "-Tascii")
	c.Stdin = strings.NewReader(page)
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NotContains(t, string(out), "warning:")
}

// The statuses stand in the manual page and, with the same words, in the documents.
func TestExitStatuses(t *testing.T) {
	page, err := os.ReadFile("../../../docs/guides/command.md")
	require.NoError(t, err)
	for _, s := range exitStatuses {
		require.Contains(t, string(page), "\n| "+s.status+" | "+s.meaning+" |\n")
	}
}
