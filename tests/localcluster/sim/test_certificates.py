"""Certificates and keys on disk."""

from __future__ import annotations

from pathlib import Path

from cryptography import x509

from stromboli.localcluster.certificates import load_or_make


def names(pem: bytes) -> set[str]:
    found = x509.load_pem_x509_certificate(pem).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(one.value) for one in found}


def test_everything_is_kept(tmp_path: Path) -> None:
    first, second = load_or_make(tmp_path), load_or_make(tmp_path)
    assert first.ca == second.ca
    assert first.serving == second.serving
    assert first.admin_token == second.admin_token
    assert first.signing_key.private_numbers() == second.signing_key.private_numbers()


def test_only_the_owner_reads_the_files(tmp_path: Path) -> None:
    load_or_make(tmp_path)
    assert {path.stat().st_mode & 0o077 for path in tmp_path.iterdir()} == {0}


def test_a_new_host_needs_a_new_certificate_of_the_same_authority(tmp_path: Path) -> None:
    first = load_or_make(tmp_path, ["127.0.0.1"])
    second = load_or_make(tmp_path, ["127.0.0.1", "cluster.example"])
    assert first.ca == second.ca
    assert first.serving != second.serving
    assert {"127.0.0.1", "cluster.example", "kubernetes.default.svc"} <= names(second.serving.certificate)
    assert load_or_make(tmp_path, ["127.0.0.1"]).serving == second.serving


def test_a_lost_authority_takes_its_certificates_along(tmp_path: Path) -> None:
    first = load_or_make(tmp_path)
    (tmp_path / "ca.key").unlink()
    second = load_or_make(tmp_path)
    assert second.ca != first.ca
    assert second.serving != first.serving
    issuer = x509.load_pem_x509_certificate(second.ca.certificate)
    x509.load_pem_x509_certificate(second.serving.certificate).verify_directly_issued_by(issuer)


def test_damaged_files_are_made_again(tmp_path: Path) -> None:
    load_or_make(tmp_path)
    for name in ("apiserver.crt", "admin.key", "serviceaccounts.key"):
        (tmp_path / name).write_text("damaged")
    (tmp_path / "token").write_text("")
    again = load_or_make(tmp_path)
    assert again.admin_token
    assert names(again.serving.certificate)
