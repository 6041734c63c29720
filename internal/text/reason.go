package text

// Reason returns the text of err without the package and the operation that it is about. Errors
// that have these as values have a method Reason. The text of one that is wrapped stays whole:
// it has words before it.
func Reason(err error) string {
	if e, ok := err.(interface{ Reason() string }); ok {
		return e.Reason()
	}
	return err.Error()
}
