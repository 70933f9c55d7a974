package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"slices"
	"time"
)

// The keys are of elliptic curves. The RSA keys that Kubernetes makes itself where it finds none
// take a twentieth of a second each.

// The key that signs the tokens of ServiceAccounts.
func writeKey(path string) reply {
	_, err := makeKey(path)
	return failed(err)
}

// What signs the certificates of nodes: PATH.key and PATH.crt.
func writeAuthority(path string) reply {
	key, err := makeKey(path + ".key")
	if err != nil {
		return failed(err)
	}
	der, err := signAuthority("the authority of a test's nodes", key)
	if err != nil {
		return failed(err)
	}
	return failed(writeCertificates(path+".crt", der))
}

// What the API server shows its clients: PATH.key, and PATH.crt with the authority behind it, so
// that whoever trusts that file trusts the API server. It is as the one that Kubernetes would make.
func writeServing(path string) reply {
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return failed(err)
	}
	authority, err := signAuthority("the authority of a test's API server", signer)
	if err != nil {
		return failed(err)
	}
	parent, err := x509.ParseCertificate(authority)
	if err != nil {
		return failed(err)
	}
	key, err := makeKey(path + ".key")
	if err != nil {
		return failed(err)
	}
	serving := valid("kube-apiserver", 2)
	serving.KeyUsage = x509.KeyUsageDigitalSignature
	serving.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	serving.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 1)}
	serving.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
	der, err := x509.CreateCertificate(rand.Reader, serving, parent, key.Public(), signer)
	if err != nil {
		return failed(err)
	}
	return failed(writeCertificates(path+".crt", der, authority))
}

func signAuthority(name string, key *ecdsa.PrivateKey) ([]byte, error) {
	authority := valid(name, 1)
	authority.KeyUsage = x509.KeyUsageCertSign
	authority.BasicConstraintsValid = true
	authority.IsCA = true
	return x509.CreateCertificate(rand.Reader, authority, authority, key.Public(), key)
}

func valid(name string, number int64) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(number),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(24 * time.Hour),
	}
}

func makeKey(path string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, writeBlocks(path, "EC PRIVATE KEY", der)
}

func writeCertificates(path string, certificates ...[]byte) error {
	return writeBlocks(path, "CERTIFICATE", certificates...)
}

func writeBlocks(path, kind string, blocks ...[]byte) error {
	var encoded [][]byte
	for _, der := range blocks {
		encoded = append(encoded, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return os.WriteFile(path, slices.Concat(encoded...), 0o600)
}
