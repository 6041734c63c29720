package bytesize

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTexts(t *testing.T) {
	for text, size := range map[string]Size{
		"0": 0, "1": 1, "1023": 1023, "1KiB": 1024, "1025": 1025, "4097": 4097, "64KiB": 64 << 10, "1MiB": 1 << 20, "3MiB": 3 << 20,
		"1536KiB": 3 << 19, "1GiB": 1 << 30, "1024GiB": 1 << 40,
	} {
		require.Equal(t, text, size.String())
		marshalled, err := size.MarshalText()
		require.NoError(t, err)
		require.Equal(t, text, string(marshalled))
		var parsed Size
		require.NoError(t, parsed.UnmarshalText([]byte(text)))
		require.Equal(t, size, parsed)
	}
	for text, size := range map[string]Size{"1K": 1 << 10, "64k": 64 << 10, "3M": 3 << 20, "2g": 2 << 30, "1kib": 1 << 10, "5mIb": 5 << 20} {
		var parsed Size
		require.NoError(t, parsed.UnmarshalText([]byte(text)), "%q", text)
		require.Equal(t, size, parsed)
	}
	const like = "write it like 4096, 64KiB, 1MiB or 2GiB; 64K, 1M and 2G are the same"
	for text, says := range map[string]string{
		"": like, "KiB": like, "K": like, "-1": like, "-1KiB": like, "0x1": like, "1T": like, "4x": like, "many": like, "1iB": like, "infM": like, "0.3KiB": like,
		"+1": "write 1", " 1": "write 1", "1 KiB": "write 1KiB", "01": "write 1", "1e3": "write 1000", "1.5MiB": "write 1536KiB", "0.5k": "write 512",
		"100B": "write 100", "4KB": "KB can mean powers of 1000 or 1024: write 4KiB for 1024", "16 mb": "mb can mean powers of 1000 or 1024: write 16MiB for 1024",
	} {
		require.EqualError(t, new(Size).UnmarshalText([]byte(text)), strconv.Quote(text)+" is not a size in bytes; "+says)
	}
	for _, text := range []string{"8589934592GiB", "9223372036854775808", "1025G"} {
		require.EqualError(t, new(Size).UnmarshalText([]byte(text)), strconv.Quote(text)+" is out of range: at most 1024GiB is allowed")
	}
}
