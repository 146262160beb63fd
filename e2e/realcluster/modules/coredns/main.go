// The cluster's name server in the end-to-end suite: upstream's CoreDNS with no more plugins than the suite's Corefile
// names, since each one brings libraries that would have to be built.
package main

import (
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
)

func main() {
	coremain.Run()
}
