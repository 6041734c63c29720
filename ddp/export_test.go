package ddp

// SetBeforeAgreement makes f run before the last call of Save and Load.
func SetBeforeAgreement(f func()) { beforeAgreement = f }
